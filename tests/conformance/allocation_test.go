package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

const volumeMountFolder = "/var/run/nvidia-container-devices"

var requestSizes = []int{1, 2, 8}

// forEachSize starts a plugin with args on a DGX H100 and admits one pod after the other.
func forEachSize(t *testing.T, args []string, check func(n *node, k *kubelet, gpus []gpu, size int)) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin(args...)
		k.waitFor(gpuResource, 8, 8)
		byUUID := map[string]gpu{}
		for _, gpu := range n.gpus() {
			byUUID[gpu.uuid] = gpu
		}
		for _, size := range requestSizes {
			pod := k.mustAdmit(newPod(fmt.Sprintf("with-%d", size), gpuResource, size))
			held := k.devicesOf(pod, gpuResource)
			if len(held) != size {
				t.Fatalf("a pod that asked for %d GPUs holds %q", size, held)
			}
			var gpus []gpu
			for _, id := range held {
				gpu, known := byUUID[id]
				if !known {
					t.Fatalf("the pod holds %s, which NVML does not know", id)
				}
				gpus = append(gpus, gpu)
			}
			slices.SortFunc(gpus, func(a, b gpu) int { return a.index - b.index })
			check(n, k, gpus, size)
			k.end(pod)
		}
	})
}

func uuids(gpus []gpu) []string {
	var ids []string
	for _, gpu := range gpus {
		ids = append(ids, gpu.uuid)
	}
	return ids
}

func optionsOf(k *kubelet, size int) *devicemanager.DeviceRunContainerOptions {
	return k.options(newPod(fmt.Sprintf("with-%d", size), gpuResource, size))
}

func wantVisibleDevices(t *testing.T, options *devicemanager.DeviceRunContainerOptions, want string) {
	t.Helper()
	if got, _ := env(options, "NVIDIA_VISIBLE_DEVICES"); got != want {
		t.Errorf("NVIDIA_VISIBLE_DEVICES is %q, want %q", got, want)
	}
}

// The answer is in the order of the GPUs' indices although the kubelet asks in random order.
func TestAllocateByEnvironment(t *testing.T) {
	forEachSize(t, nil, func(n *node, k *kubelet, gpus []gpu, size int) {
		options := optionsOf(k, size)
		wantVisibleDevices(t, options, strings.Join(uuids(gpus), ","))
		if len(options.Mounts)+len(options.Devices)+len(options.CDIDevices) != 0 {
			t.Errorf("envvar alone handed out more: %+v", options)
		}
	})
}

func TestAllocateByIndex(t *testing.T) {
	forEachSize(t, []string{"--device-id-strategy=index"},
		func(n *node, k *kubelet, gpus []gpu, size int) {
			var indices []string
			for _, gpu := range gpus {
				indices = append(indices, fmt.Sprint(gpu.index))
			}
			wantVisibleDevices(t, optionsOf(k, size), strings.Join(indices, ","))
		})
}

func TestAllocateByVolumeMounts(t *testing.T) {
	forEachSize(t, []string{"--device-list-strategy=volume-mounts"},
		func(n *node, k *kubelet, gpus []gpu, size int) {
			options := optionsOf(k, size)
			wantVisibleDevices(t, options, volumeMountFolder)
			want := map[string]string{}
			for _, gpu := range gpus {
				want[volumeMountFolder+"/"+gpu.uuid] = "/dev/null"
			}
			got := map[string]string{}
			for _, mount := range options.Mounts {
				got[mount.ContainerPath] = mount.HostPath
			}
			if !maps.Equal(got, want) {
				t.Errorf("mounts (container path: host path) are\n%q, want\n%q", got, want)
			}
		})
}

func TestAllocateWithDeviceSpecs(t *testing.T) {
	forEachSize(t, []string{"--pass-device-specs"},
		func(n *node, k *kubelet, gpus []gpu, size int) {
			options := optionsOf(k, size)
			wantVisibleDevices(t, options, strings.Join(uuids(gpus), ","))
			want := []string{"/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
				"/dev/nvidiactl"}
			for _, gpu := range gpus {
				want = append(want, fmt.Sprintf("/dev/nvidia%d", gpu.minor))
			}
			var got []string
			for _, device := range options.Devices {
				got = append(got, device.PathInContainer)
				if device.PathOnHost != device.PathInContainer || device.Permissions != "rw" {
					t.Errorf("device spec %+v, want the same path on the host and rw", device)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("device nodes are\n%q, want\n%q", got, want)
			}
		})
}

func TestPodsShareTheNodeUntilItIsFull(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		holder := map[string]string{}
		for i := range 8 {
			pod := k.mustAdmit(newPod(fmt.Sprintf("pod-%d", i), gpuResource, 1))
			for _, id := range k.devicesOf(pod, gpuResource) {
				if other := holder[id]; other != "" {
					t.Fatalf("%s was given to %s and to %s", id, other, pod.Name)
				}
				holder[id] = pod.Name
			}
		}
		if err := k.admit(newPod("one-too-many", gpuResource, 1)); err == nil {
			t.Error("a ninth pod was admitted on eight GPUs")
		}
	})
}

// What an init container held goes to the next container without a new choice.
func TestInitContainerHandsItsDevicesOn(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(withInitContainer(newPod("with-init", gpuResource, 2)))
		init := sortedIDs(k.manager.devices.GetDevices(string(pod.UID), "init")[gpuResource])
		if main := k.devicesOf(pod, gpuResource); !slices.Equal(init, main) || len(main) != 2 {
			t.Errorf("the init container holds %q, the container %q; want the same two", init, main)
		}
	})
}

// Where GPUs differ in how they are linked, the kubelet allocates what the plugin prefers.
func TestKubeletAllocatesThePreferredSet(t *testing.T) {
	onNode(t, "dgx1-v100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		client := n.dial(n.sockets()[0])
		taken := k.mustAdmit(newPod("first", gpuResource, 1))
		for _, size := range []int{2, 3, 4, 6} {
			free := without(k.healthyIDs(gpuResource), k.devicesOf(taken, gpuResource))
			want := client.preferred(free, nil, size)
			pod := k.mustAdmit(newPod(fmt.Sprintf("with-%d", size), gpuResource, size))
			if got := k.devicesOf(pod, gpuResource); !slices.Equal(got, want) {
				t.Errorf("%d of %d GPUs: the pod holds\n%q, the plugin prefers\n%q", size, len(free),
					got, want)
			}
			k.end(pod)
		}
	})
}

func without(ids, dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.Contains(dropped, id)
	})
}
