package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

const cdiVendor = "k8s.device-plugin.nvidia.com/"

// contentOf is what a container gets of one class of addClasses' machine.
func contentOf(class, root string) container {
	node := func(path string, major, minor int64, mode, gid uint32) string {
		return nodeLine(path, "c", major, minor, mode, gid, "rwm")
	}
	mount := func(path string) string {
		return mountLine(filepath.Join(root, path), path, "", []string{"ro", "nosuid", "nodev", "rbind", "rprivate"})
	}
	void := []string{"NVIDIA_VISIBLE_DEVICES=void"}
	return map[string]container{
		// The file has no numbers of it: the reader looks at the node.
		"imex-channel=0": {Nodes: []string{node("/dev/nvidia-caps-imex-channels/channel0", 237, 0, 0o666, 0)}},
		"gdrcopy=all":    {Nodes: []string{node("/dev/gdrdrv", 235, 0, 0o666, 0)}, Env: void},
		"gds=all": {
			Nodes:  []string{node("/dev/nvidia-fs0", 240, 0, 0o600, 0), node("/dev/nvidia-fs1", 240, 1, 0o600, 0)},
			Mounts: []string{mount("/etc/cufile.json"), mount("/run/udev")},
			Env:    void,
		},
		"mofed=all": {
			Nodes: []string{node("/dev/infiniband/rdma_cm", 10, 58, 0o666, 0),
				node("/dev/infiniband/uverbs0", 231, 192, 0o660, 112),
				node("/dev/infiniband/uverbs1", 231, 193, 0o660, 0)},
			Env:    void,
			Groups: []uint32{112},
		},
	}[class]
}

// What Allocate names besides GPUs resolves as well, whichever way GPUs are named, and gives the
// container what the class is for.
func TestCDIDevicesOfEveryClass(t *testing.T) {
	for _, naming := range []string{"uuid", "index"} {
		t.Run(naming, func(t *testing.T) {
			onNode(t, "gb200", func(n *node) {
				root := n.driverRoot()
				addClasses(t, root)
				k := n.startKubelet()
				n.startPlugin(slices.Concat(n.cdiArgs("cdi-cri,cdi-annotations"), classArgs,
					[]string{"--device-id-strategy=" + naming})...)
				k.waitFor(gpuResource, 4, 4)
				pod := k.mustAdmit(newPod("pod", gpuResource, 2))
				var gpus, want []string
				held := n.gpusOf(k.devicesOf(pod, gpuResource))
				for _, gpu := range held {
					id := gpu.uuid
					if naming == "index" {
						id = fmt.Sprint(gpu.index)
					}
					gpus = append(gpus, cdiGPU+id)
				}
				want = append(gpus, cdiVendor+"imex-channel=0", cdiVendor+"gdrcopy=all", cdiVendor+"gds=all",
					cdiVendor+"mofed=all")

				options := k.options(pod)
				var names []string
				for _, device := range options.CDIDevices {
					names = append(names, device.Name)
				}
				if !slices.Equal(names, want) {
					t.Errorf("CDI devices are\n%q, want\n%q", names, want)
				}
				if len(options.Annotations) != 1 {
					t.Fatalf("want one annotation, got %+v", options.Annotations)
				}
				annotation := options.Annotations[0]
				_, annotated, err := cdi.ParseAnnotations(map[string]string{annotation.Name: annotation.Value})
				must(t, err)
				if !slices.Equal(annotated, want) {
					t.Errorf("the annotation names\n%q, want\n%q", annotated, want)
				}
				for _, name := range []string{"NVIDIA_GDS", "NVIDIA_MOFED", "NVIDIA_GDRCOPY"} {
					if value, _ := env(options, name); value != "enabled" {
						t.Errorf("%s=%q, want enabled", name, value)
					}
				}

				checkContainer(t, n, inject(t, gpus), held)
				whole := containerOf(t, inject(t, gpus))
				for _, name := range names[len(gpus):] {
					// Alone it gives its own, and nothing of the others.
					alone := contentOf(strings.TrimPrefix(name, cdiVendor), root)
					alone.Other = whole.Other
					containerOf(t, inject(t, []string{name})).check(t, name, alone)
					whole.Nodes = append(whole.Nodes, alone.Nodes...)
					whole.Mounts = append(whole.Mounts, alone.Mounts...)
					whole.Groups = append(whole.Groups, alone.Groups...)
				}
				whole.sort()
				containerOf(t, inject(t, names)).check(t, "the container", whole)
			})
		})
	}
}
