package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// partition puts one GPU into MIG mode and lays it out, while nobody has a session open.
func (n *node) partition(gpu int, profiles string) {
	n.t.Helper()
	n.sim("mig", "--gpu", fmt.Sprint(gpu), "--mode", "on")
	n.sim("mig", "--gpu", fmt.Sprint(gpu), "--profiles", profiles)
}

func TestMIGSingle(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		for i := range 8 {
			n.partition(i, "1g.10gb*7")
		}
		k := n.startKubelet()
		n.startPlugin("--mig-strategy=single", "--pass-device-specs")
		k.waitFor(gpuResource, 56, 56)

		pod := k.mustAdmit(newPod("slice", gpuResource, 1))
		id := k.devicesOf(pod, gpuResource)[0]
		options := k.options(pod)
		wantVisibleDevices(t, options, id)
		for _, gpu := range n.gpus() {
			if !slices.Contains(gpu.migDevices, id) {
				continue
			}
			// The parent's node and those of the two capabilities.
			var caps, parents int
			for _, device := range options.Devices {
				switch {
				case strings.HasPrefix(device.PathInContainer, "/dev/nvidia-caps/nvidia-cap"):
					caps++
				case device.PathInContainer == fmt.Sprintf("/dev/nvidia%d", gpu.minor):
					parents++
				}
			}
			if caps != 2 || parents != 1 {
				t.Errorf("%s has %d cap nodes and %d parent nodes, want 2 and 1: %+v", id, caps,
					parents, options.Devices)
			}
			return
		}
		t.Errorf("the pod holds %s, which is no MIG device of this machine", id)
	})
}

// A layout that is not uniform offers nothing under the single name, and comes in when it is.
func TestMIGSingleWaitsForAUniformLayout(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		for i := range 8 {
			n.partition(i, "1g.10gb*7")
		}
		n.sim("mig", "--gpu", "0", "--profiles", "3g.40gb*2")
		k := n.startKubelet()
		p := n.startPlugin("--mig-strategy=single", "--rescan-interval=100ms")
		throughout(t, 2*settled, "nothing can be allocated", func() (bool, string) {
			now := k.offer(gpuResource)
			return now.allocatable == 0, now.String()
		})
		p.mustRun()
		n.sim("mig", "--gpu", "0", "--profiles", "1g.10gb*7")
		eventually(t, patience, "56 slices can be allocated", func() (bool, string) {
			now := k.offer(gpuResource)
			return now.allocatable == 56, now.String()
		})
	})
}

func TestMIGMixed(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		n.partition(0, "1g.10gb*7")
		n.partition(1, "3g.40gb*2")
		n.partition(2, "1g.10gb+me*1,2g.20gb*3")
		k := n.startKubelet()
		n.startPlugin("--mig-strategy=mixed")
		k.waitFor(gpuResource, 5, 5)
		k.waitFor("nvidia.com/mig-1g.10gb", 7, 7)
		k.waitFor("nvidia.com/mig-3g.40gb", 2, 2)
		k.waitFor("nvidia.com/mig-2g.20gb", 3, 3)
		k.waitFor("nvidia.com/mig-1g.10gb.me", 1, 1)

		pod := k.mustAdmit(newPod("both-halves", "nvidia.com/mig-3g.40gb", 2))
		held := k.devicesOf(pod, "nvidia.com/mig-3g.40gb")
		want := slices.Sorted(slices.Values(n.gpus()[1].migDevices))
		if !slices.Equal(held, want) {
			t.Errorf("the pod holds %q, GPU 1 has %q", held, want)
		}
	})
}

// A GPU is re-partitioned while pods hold slices of it and of others.
func TestRepartitionWhileRunning(t *testing.T) {
	const small, half = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
	onNode(t, "dgx-h100", func(n *node) {
		n.partition(0, "1g.10gb*7")
		n.partition(1, "1g.10gb*7")
		k := n.startKubelet()
		n.startPlugin("--mig-strategy=mixed", "--rescan-interval=100ms")
		k.waitFor(gpuResource, 6, 6)
		k.waitFor(small, 14, 14)
		all := k.mustAdmit(newPod("all-slices", small, 14))
		full := k.mustAdmit(newPod("full-gpus", gpuResource, 6))

		n.sim("mig", "--gpu", "1", "--profiles", "3g.40gb*2")
		k.waitFor(half, 2, 2)
		k.waitFor(small, 14, 7) // the pod's old slices stay, Unhealthy
		k.staysAt(settled, gpuResource, 6, 6)
		pod := k.mustAdmit(newPod("half", half, 1))
		wantVisibleDevices(t, k.options(pod), k.devicesOf(pod, half)[0])
		k.options(all)
		k.options(full)

		k.end(all, full)
		// The kubelet writes down what pods hold only when it allocates or gets a list.
		k.mustAdmit(newPod("next", gpuResource, 1))
		k.waitForWithin(retirement, small, 7, 7)
	})
}
