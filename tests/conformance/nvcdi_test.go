//go:build !kubelet134

package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tags.cncf.io/container-device-interface/specs-go"
)

// eachEdits calls change with the edits that all devices share and with those of each device.
func eachEdits(spec *specs.Spec, change func(edits *specs.ContainerEdits)) {
	change(&spec.ContainerEdits)
	for i := range spec.Devices {
		change(&spec.Devices[i].ContainerEdits)
	}
}

// inHookArgs makes a difference in the arguments of hooks.
func inHookArgs(reason, old, new string) difference {
	return difference{reason, func(theirs *specs.Spec) bool {
		changed := false
		eachEdits(theirs, func(edits *specs.ContainerEdits) {
			for _, hook := range edits.Hooks {
				for i, arg := range hook.Args {
					hook.Args[i] = strings.ReplaceAll(arg, old, new)
					changed = changed || hook.Args[i] != arg
				}
			}
		})
		return changed
	}}
}

// linksUnderTheRoot is the difference that every file has whose GPUs have DRM nodes, unless the
// plugin sees the driver's root at /.
func linksUnderTheRoot(root string) difference {
	return inHookArgs("NVIDIA's links of /dev/dri/by-path carry the path by which the plugin sees the dev root",
		"::"+root+"/dev/dri/", "::/dev/dri/")
}

func TestNVIDIAsSpecOfWholeGPUs(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		root := n.driverRoot()
		for name, args := range map[string][]string{
			"mounted":          {},
			"at the same path": {"--driver-root=" + root},
			"index names":      {"--device-id-strategy=index"},
			"another hook":     {"--nvidia-cdi-hook-path=/usr/local/nvidia/toolkit/nvidia-cdi-hook"},
		} {
			t.Run(name, func(t *testing.T) {
				n.newComparison(t, args...).same(linksUnderTheRoot(root))
			})
		}
		t.Run("plain host", func(t *testing.T) {
			n.onPlainHost(t).same()
		})
	})
}

func TestNVIDIAsSpecWithFeatureFlagsAndWithoutHooks(t *testing.T) {
	onNode(t, "gb200", func(n *node) {
		furnish(t, n.driverRoot())
		links := linksUnderTheRoot(n.driverRoot())
		for _, flag := range []string{"", "enable-explicit-driver-libraries", "disable-nvsandboxutils",
			"disable-nvsandbox-utils", "enable-coherent-annotations", "disable-multiple-csv-devices",
			"no-additional-gids-for-device-nodes", "disable-ipc-discoverer",
			"enable-explicit-driver-libraries,enable-coherent-annotations,disable-ipc-discoverer"} {
			t.Run(flag, func(t *testing.T) {
				n.newComparison(t, "--cdi-feature-flags="+flag).same(links)
			})
		}
		for _, hook := range []string{"enable-cuda-compat", "update-ldcache",
			"disable-device-node-modification", "update-application-profile", "chmod"} {
			t.Run("without "+hook, func(t *testing.T) {
				n.newComparison(t, "--cdi-disable-hooks="+hook).same(links)
			})
		}
		for _, hooks := range []string{"create-symlinks", "create-symlinks,update-ldcache", "all"} {
			t.Run("without "+hooks, func(t *testing.T) {
				n.newComparison(t, "--cdi-disable-hooks="+hooks).same()
			})
		}
	})
}

func TestNVIDIAsSpecOfMIGDevices(t *testing.T) {
	onNode(t, "dgx-a100", func(n *node) {
		n.partition(0, "3g.20gb*2")
		n.partition(3, "1g.5gb*7")
		n.sim("mig", "--gpu", "5", "--mode", "on")
		links := linksUnderTheRoot(n.driverRoot())
		for _, naming := range []string{"uuid", "index"} {
			t.Run(naming, func(t *testing.T) {
				spec := n.newComparison(t, "--device-id-strategy="+naming).same(links)
				if want := 5 + 2 + 7; len(spec.Devices) != want {
					t.Errorf("%d devices, want %d: 5 GPUs and 9 MIG devices", len(spec.Devices), want)
				}
			})
		}
	})
}

func TestNVIDIAsSpecOfGraphicsSlices(t *testing.T) {
	onNode(t, "rtx-pro-6000", func(n *node) {
		n.partition(0, "1g.24gb+gfx*2")
		spec := n.newComparison(t).same(linksUnderTheRoot(n.driverRoot()))
		if text := string(encode(t, spec)); strings.Count(text, `"path":"/dev/dri/card1"`) != 2 {
			t.Errorf("both MIG devices have the parent's nodes for graphics, got %s", text)
		}
	})
}

func TestNVIDIAsSpecOfEveryDriverFile(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		furnish(t, n.driverRoot())
		t.Run("mounted", func(t *testing.T) {
			n.newComparison(t).same(linksUnderTheRoot(n.driverRoot()))
		})
		t.Run("plain host", func(t *testing.T) {
			n.onPlainHost(t).same()
		})
	})
}

func TestNVIDIAsSpecsOfEveryClass(t *testing.T) {
	onNode(t, "gb200", func(n *node) {
		root := n.driverRoot()
		addClasses(t, root)
		all := classArgs
		for name, args := range map[string][]string{
			"mounted":          {},
			"at the same path": {"--driver-root=" + root},
			"driver container": {"--driver-root=/run/nvidia/driver"},
			"no gids":          {"--cdi-feature-flags=no-additional-gids-for-device-nodes"},
		} {
			t.Run(name, func(t *testing.T) {
				c := n.newComparison(t, slices.Concat(all, args)...)
				c.same(linksUnderTheRoot(root))
				if len(c.files) != 5 {
					t.Errorf("want a file of each class, got %q", names(c.files))
				}
			})
		}
		t.Run("plain host", func(t *testing.T) {
			n.onPlainHost(t, all...).same()
		})
		for _, gone := range []string{"dev/gdrdrv", "dev/nvidia-fs0", "dev/nvidia-fs1", "dev/infiniband"} {
			must(t, os.RemoveAll(filepath.Join(root, gone)))
		}
		t.Run("none there", func(t *testing.T) {
			c := n.newComparison(t, all...)
			c.same(linksUnderTheRoot(root))
			if len(c.files) != 2 {
				t.Errorf("want files of GPUs and of IMEX channels alone, got %q", names(c.files))
			}
		})
	})
}

// withoutDevices is the difference of devices that NVIDIA's file of the whole machine still had.
func withoutDevices(reason string, names ...string) difference {
	return difference{reason, func(theirs *specs.Spec) bool {
		before := len(theirs.Devices)
		theirs.Devices = slices.DeleteFunc(theirs.Devices,
			func(device specs.Device) bool { return slices.Contains(names, device.Name) })
		return len(theirs.Devices) == before-len(names)
	}}
}

// What ends NVIDIA's generator, or gives a container a device that it cannot open, costs us the one
// device: it is not in the file, and Unhealthy with the reason.
func TestNVIDIAsSpecWithBadDevices(t *testing.T) {
	onNode(t, "dgx-a100", func(n *node) {
		n.partition(0, "3g.20gb*2")
		n.partition(1, "3g.20gb*2")
		root := n.driverRoot()
		links := linksUnderTheRoot(root)
		gpus := n.gpus()
		// Of each GPU's second GPU instance; 21 is the capability of GPU 0's instance 2.
		nodeless, capless := gpus[0].migDevices[1], gpus[1].migDevices[1]

		must(t, os.Remove(filepath.Join(root, "dev/nvidia-caps/nvidia-cap21")))
		must(t, os.Remove(filepath.Join(root, "dev/nvidia3")))
		t.Run("no nodes", func(t *testing.T) {
			n.newComparison(t).same(links, withoutDevices("NVIDIA's file has devices without their nodes, "+
				"which no container can use", nodeless, gpus[3].uuid))
		})
		t.Run("no capability", func(t *testing.T) {
			c := n.newComparison(t)
			whole, err := c.theirs()
			must(t, err)
			minors := filepath.Join(root, "proc/driver/nvidia-caps/mig-minors")
			text, err := os.ReadFile(minors)
			must(t, err)
			entry := regexp.MustCompile("(?m)^gpu1/gi2/ci0/access .*\n")
			must(t, os.WriteFile(minors, entry.ReplaceAll(text, nil), 0o444))
			c.theirsFails("gpu1/gi2/ci0")
			c.want = whole
			c.same(links, withoutDevices("as above", nodeless, gpus[3].uuid),
				withoutDevices("NVIDIA's generator ends", capless))
			must(t, os.WriteFile(minors, text, 0o444))
		})
		t.Run("a GPU off the bus", func(t *testing.T) {
			c := n.newComparison(t)
			whole, err := c.theirs()
			must(t, err)
			n.sim("gpu", "--gpu", "5", "--state", "lost")
			c.theirsFails("GPU is lost")
			c.want = whole
			c.same(links, withoutDevices("as above", nodeless, gpus[3].uuid),
				withoutDevices("NVIDIA's generator ends", gpus[5].uuid))
		})
	})
}

// Where no device is usable NVIDIA's generator ends; ours goes on without a file, as the integration
// tests show.
func TestNVIDIAsGeneratorEndsWithoutDevices(t *testing.T) {
	onNode(t, "a30", func(n *node) {
		for _, gpu := range n.gpus() {
			n.sim("gpu", "--gpu", gpu.uuid, "--remove")
		}
		n.newComparison(t).theirsFails("no devices")
	})
}
