//go:build !kubelet134

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tags.cncf.io/container-device-interface/specs-go"
)

const driverContainer = "/run/nvidia/driver"

func TestNVIDIAsSpecOfADriverContainer(t *testing.T) {
	onNode(t, "driver-container", func(n *node) {
		compare := func(t *testing.T, args ...string) *comparison {
			c := n.newComparison(t, append([]string{"--driver-root=" + driverContainer}, args...)...)
			c.driverRoot = filepath.Join(c.host, driverContainer)
			return c
		}
		root := filepath.Join(n.driverRoot(), driverContainer)
		t.Run("as it is", func(t *testing.T) { compare(t).same(linksUnderTheRoot(root)) })
		t.Run("dev root", func(t *testing.T) {
			compare(t, "--dev-root=/").same(linksUnderTheRoot(root),
				difference{"NVIDIA's plugin ignores --dev-root where the driver root has a /dev",
					func(theirs *specs.Spec) bool {
						changed := false
						eachEdits(theirs, func(edits *specs.ContainerEdits) {
							for _, node := range edits.DeviceNodes {
								node.HostPath = strings.TrimPrefix(node.HostPath, driverContainer)
								changed = true
							}
						})
						return changed
					}})
		})
		// Last, for it changes the machine.
		t.Run("links out of the root", func(t *testing.T) {
			c := compare(t)
			var err error
			c.want, err = c.theirs()
			must(t, err)
			for _, file := range []string{"usr/bin/nvidia-smi", "etc/OpenCL/vendors/nvidia.icd"} {
				link := filepath.Join(root, file)
				must(t, os.MkdirAll(filepath.Join(root, "opt/moved"), 0o755))
				must(t, os.Rename(link, filepath.Join(root, "opt/moved", filepath.Base(file))))
				must(t, os.Symlink(filepath.Join("/opt/moved", filepath.Base(file)), link))
			}
			c.same(linksUnderTheRoot(root),
				difference{"NVIDIA's generator follows absolute links in the plugin's own file system, where " +
					"they lead nowhere, and hands links on as the host's paths",
					func(theirs *specs.Spec) bool {
						changed := false
						for _, mount := range theirs.ContainerEdits.Mounts {
							switch name := filepath.Base(mount.ContainerPath); name {
							case "nvidia-smi", "nvidia.icd":
								mount.HostPath = filepath.Join(driverContainer, "opt/moved", name)
								changed = true
							}
						}
						return changed
					}})
		})
	})
}

func TestNVIDIAsSpecOfAHostWithItsDriverElsewhere(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		n.onPlainHost(t, "--driver-root="+driverContainer).same(
			difference{"the hook's path is the host's already", func(theirs *specs.Spec) bool {
				changed := false
				eachEdits(theirs, func(edits *specs.ContainerEdits) {
					for _, hook := range edits.Hooks {
						path := strings.TrimPrefix(hook.Path, driverContainer)
						changed = changed || path != hook.Path
						hook.Path = path
					}
				})
				return changed
			}})
	})
}

func TestNVIDIAsSpecOnGKE(t *testing.T) {
	const there = "/home/kubernetes/bin/nvidia"
	onNode(t, "gke", func(n *node) {
		for name, args := range map[string][]string{
			"nodes of the host":   {"--driver-root=" + there, "--dev-root=/"},
			"nodes of the driver": {"--driver-root=" + there},
			"nodes of another":    {"--driver-root=" + there, "--dev-root=/elsewhere"},
			"dev root with /dev":  {"--driver-root=" + there, "--dev-root=/elsewhere/dev"},
		} {
			t.Run(name, func(t *testing.T) {
				c := n.newComparison(t, args...)
				c.driverRoot = filepath.Join(c.host, there)
				c.same()
			})
		}
	})
}

// Libraries that only the loader's cache knows of.
func TestNVIDIAsSpecByTheLoadersCache(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		root := n.driverRoot()
		folder := filepath.Join(root, "opt/nvidia")
		must(t, os.Mkdir(filepath.Dir(folder), 0o755))
		must(t, os.Rename(filepath.Join(root, "usr/lib/x86_64-linux-gnu"), folder))
		must(t, os.WriteFile(filepath.Join(root, "etc/ld.so.conf"), []byte("/opt/nvidia\n"), 0o644))
		if output, err := exec.Command("/sbin/ldconfig", "-r", root).CombinedOutput(); err != nil {
			t.Fatalf("ldconfig: %v: %s", err, output)
		}
		c := n.newComparison(t)
		c.env = []string{"LD_LIBRARY_PATH=" + folder}
		c.same(linksUnderTheRoot(root))
	})
}

// Where distributions put the driver, apart from Debian's folder for libraries of one machine kind.
func TestNVIDIAsSpecOfDistributions(t *testing.T) {
	const multiarch = "usr/lib/x86_64-linux-gnu"
	move := func(t *testing.T, root, from, to string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o755))
		must(t, os.Rename(filepath.Join(root, from), filepath.Join(root, to)))
	}
	link := func(t *testing.T, root, target, path string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		must(t, os.Symlink(target, filepath.Join(root, path)))
	}
	mergedUsr := func(t *testing.T, root string) {
		move(t, root, "lib/firmware", "usr/lib/firmware")
		must(t, os.Remove(filepath.Join(root, "lib")))
		link(t, root, "usr/lib", "lib")
		link(t, root, "usr/bin", "bin")
		must(t, os.MkdirAll(filepath.Join(root, "usr/lib64"), 0o755))
		link(t, root, "usr/lib64", "lib64")
		link(t, root, "../run", "var/run")
		move(t, root, "run/nvidia-persistenced", "run/nvidia-fabricmanager")
	}
	for name, arrange := range map[string]func(t *testing.T, root string){
		"merged usr": mergedUsr,
		"Fedora": func(t *testing.T, root string) {
			mergedUsr(t, root)
			must(t, os.Remove(filepath.Join(root, "usr/lib64")))
			move(t, root, multiarch, "usr/lib64")
		},
		"Debian's alternatives": func(t *testing.T, root string) {
			version := driverVersion(t, root)
			move(t, root, multiarch, "current")
			move(t, root, "current", multiarch+"/nvidia/current")
			for _, name := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
				alternative := "etc/alternatives/glx--" + name
				file := strings.Replace(name, ".so.1", ".so."+version, 1)
				link(t, root, "/"+multiarch+"/nvidia/current/"+file, alternative)
				link(t, root, "/"+alternative, multiarch+"/"+name)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, "a30", func(n *node) {
				root := n.driverRoot()
				arrange(t, root)
				n.onPlainHost(t).same()
				// Seen from elsewhere, absolute links lead NVIDIA's generator astray.
				if name != "Debian's alternatives" {
					n.newComparison(t).same(linksUnderTheRoot(root))
				}
			})
		})
	}
}
