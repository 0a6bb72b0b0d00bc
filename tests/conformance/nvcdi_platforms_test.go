//go:build !kubelet134

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tags.cncf.io/container-device-interface/specs-go"
)

const csvFolder = "etc/nvidia-container-runtime/host-files-for-container.d"

// deviceNamed is the difference of the one device's name.
func deviceNamed(reason, name string) difference {
	return difference{reason, func(theirs *specs.Spec) bool {
		theirs.Devices[0].Name = name
		return true
	}}
}

func TestNVIDIAsSpecOfTegra(t *testing.T) {
	byIndex := []string{"--device-discovery-strategy=tegra", "--device-id-strategy=index"}
	onNode(t, "jetson", func(n *node) {
		root := n.driverRoot()
		csv := filepath.Join(root, csvFolder)
		must(t, os.WriteFile(filepath.Join(csv, "l4t.csv"), []byte("lib, /usr/lib/aarch64-linux-gnu/nvidia/*.so*\n"+
			"dev, /dev/nvhost-*\n\n# a comment\nbad line\nfile, /etc/passwd\nlib, /not/there\n"+
			"sym, /usr/lib/aarch64-linux-gnu/dangling.so\ndir, /usr/share/glvnd/*\n"), 0o644))
		must(t, os.Symlink("nowhere", filepath.Join(root, "usr/lib/aarch64-linux-gnu/dangling.so")))
		t.Run("plain host", func(t *testing.T) { n.onPlainHost(t, byIndex...).same() })
		mounted := []difference{
			inHookArgs("NVIDIA's links carry the path by which the plugin sees the driver's root",
				"::"+root+"/", "::/"),
			{"NVIDIA's generator looks for /etc/nv_tegra_release in the plugin's own file system",
				func(theirs *specs.Spec) bool {
					release := "/etc/nv_tegra_release"
					theirs.ContainerEdits.Mounts = append([]*specs.Mount{{HostPath: release, ContainerPath: release,
						Options: theirs.ContainerEdits.Mounts[0].Options}}, theirs.ContainerEdits.Mounts...)
					return true
				}},
		}
		t.Run("mounted", func(t *testing.T) { n.newComparison(t, byIndex...).same(mounted...) })
		t.Run("generate", func(t *testing.T) {
			n.onPlainHost(t, "--device-name-strategy=index").sameGenerated("json")
		})
		t.Run("by UUID", func(t *testing.T) {
			c := n.onPlainHost(t, byIndex[0])
			c.theirsFails("no names defined")
			c.theirArgs = byIndex
			c.same(deviceNamed("there is no UUID; the kubelet knows the device as tegra", "tegra"),
				difference{"a name that begins with a letter needs no newer version", func(theirs *specs.Spec) bool {
					theirs.Version = "0.7.0"
					return true
				}})
		})
	})
}

func TestNVIDIAsSpecOfThor(t *testing.T) {
	onNode(t, "thor", func(n *node) {
		byIndex := []string{"--device-discovery-strategy=tegra", "--device-id-strategy=index"}
		t.Run("index", func(t *testing.T) { n.onPlainHost(t, byIndex...).same() })
		t.Run("generate", func(t *testing.T) {
			n.onPlainHost(t, "--device-name-strategy=index").sameGenerated("json")
		})
		// Asked to be taken for a GPU like any other: NVIDIA's file is of CSV files all the same, and
		// names no UUID.
		t.Run("as a GPU", func(t *testing.T) {
			c := n.onPlainHost(t, "--device-discovery-strategy=nvml")
			c.theirsFails("no names defined")
			c.theirArgs = append(c.args, "--mode=nvml")
			c.same()
		})
	})
}

// An Orin, whose NVML tells no PCI address of its GPU, with a discrete GPU beside it.
func TestNVIDIAsSpecOfTegraWithADiscreteGPU(t *testing.T) {
	const orin = `{description: Orin with a card, platform: tegra, driver: "540.4.0", cuda: "12.6", gpus: [
  {name: Orin (nvgpu), memoryMiB: 61440, computeCapability: "8.7", architecture: 7, pciId: 0x229A10DE, pci: ["00:00"]},
  {name: NVIDIA RTX A6000, memoryMiB: 49140, computeCapability: "8.6", architecture: 7, pciId: 0x223010DE,
   pci: ["0005:01:00"]}]}
`
	byIndex := []string{"--device-discovery-strategy=tegra", "--device-id-strategy=index"}
	inOwnProcess(t, func() {
		profile := filepath.Join(kubeletRoot, "orin.yaml")
		must(t, os.WriteFile(profile, []byte(orin), 0o644))
		onNode(t, profile, func(n *node) {
			n.sim("function", "--gpu", "0", "--function", "nvmlDeviceGetPciInfo_v3", "--error", "not-supported")
			root := n.driverRoot()
			addNodes(t, root, 195, 2, 0o666, "nvidia2")
			must(t, os.WriteFile(filepath.Join(root, csvFolder, "l4t.csv"),
				[]byte("dev, /dev/nvidia0\ndev, /dev/nvidia1\ndev, /dev/nvidiactl\ndev, /dev/nvidia-modeset\n"), 0o644))
			t.Run("index", func(t *testing.T) { n.onPlainHost(t, byIndex...).same() })
			t.Run("one device", func(t *testing.T) {
				n.onPlainHost(t, append(byIndex, "--cdi-feature-flags=disable-multiple-csv-devices")...).same()
			})
		})
	})
}

func TestNVIDIAsSpecOfWSL(t *testing.T) {
	onNode(t, "wsl", func(n *node) {
		root := n.driverRoot()
		// The stand-in for Windows' library that the unit tests have, and the store that it names.
		library := filepath.Join(root, "usr/lib/wsl/lib/libdxcore.so")
		build := exec.Command("c++", "-shared", "-fPIC", "-o", library, "../../testing/fake_dxcore.cc")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build libdxcore: %v: %s", err, output)
		}
		stores, err := filepath.Glob(filepath.Join(root, "usr/lib/wsl/drivers/nv*"))
		must(t, err)
		store := filepath.Join(filepath.Dir(stores[0]), "nv_dispi.inf_amd64_2")
		must(t, os.Rename(stores[0], store))
		for _, name := range []string{"libnvoptix.so.1", "libnvidia-encode.so.1", "more.bin", "nvwgf2umx.dll", "readme.txt"} {
			must(t, os.WriteFile(filepath.Join(store, name), nil, 0o644))
		}
		inWSL := []string{"LD_LIBRARY_PATH=/usr/lib/wsl/lib"}
		for name, args := range map[string][]string{
			"as it is":     nil,
			"another hook": {"--nvidia-cdi-hook-path=/usr/bin/nvidia-cdi-hook"},
			"no hooks":     {"--cdi-disable-hooks=all"},
			"no smi link":  {"--cdi-disable-hooks=create-symlinks"},
			"index names":  {"--device-id-strategy=index"},
		} {
			t.Run(name, func(t *testing.T) {
				c := n.onPlainHost(t, args...)
				c.env = inWSL
				c.same()
			})
		}
		t.Run("generate", func(t *testing.T) {
			c := n.onPlainHost(t, "--device-name-strategy=index")
			c.env = inWSL
			c.sameGenerated("json")
		})
	})
}
