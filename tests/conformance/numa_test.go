package conformance

import (
	"fmt"
	"slices"
	"testing"
)

// nodesOf maps each healthy id to the NUMA nodes that the kubelet was told; a GPU of node 0 must
// not look like one without a node.
func (k *kubelet) nodesOf(resource string) map[string][]int64 {
	nodes := map[string][]int64{}
	for id, device := range k.manager.healthyDevices()[resource] {
		for _, node := range device.Topology.GetNodes() {
			nodes[id] = append(nodes[id], node.ID)
		}
	}
	return nodes
}

func TestGPUsCarryTheirNUMANode(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		for _, gpu := range n.gpus() {
			want := []int64{n.numaNode(gpu)}
			if got := k.nodesOf(gpuResource)[gpu.uuid]; !slices.Equal(got, want) {
				t.Errorf("GPU %d: the kubelet was told NUMA nodes %v, sysfs says %v", gpu.index, got, want)
			}
		}
	})
}

func TestTopologyHints(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubeletWith("best-effort")
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		for size, want := range map[int][]string{4: {"[0]", "[1]"}, 5: {"[0 1]"}} {
			pod := newPod(fmt.Sprintf("hints-%d", size), gpuResource, size)
			var preferred []string
			for _, hint := range k.manager.topologyHints(pod, &pod.Spec.Containers[0])[gpuResource] {
				if hint.Preferred {
					preferred = append(preferred, fmt.Sprint(hint.NUMANodeAffinity.GetBits()))
				}
			}
			slices.Sort(preferred)
			if !slices.Equal(preferred, want) {
				t.Errorf("%d GPUs: preferred NUMA nodes %v, want %v", size, preferred, want)
			}
		}
	})
}

func TestSingleNUMANodePolicyFindsFourGPUsTwice(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubeletWith("single-numa-node")
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		for _, name := range []string{"one", "other"} {
			pod := k.mustAdmit(newPod(name, gpuResource, 4))
			seen := map[int64]bool{}
			for _, id := range k.devicesOf(pod, gpuResource) {
				for _, node := range k.nodesOf(gpuResource)[id] {
					seen[node] = true
				}
			}
			if len(seen) != 1 {
				t.Errorf("the four GPUs of pod %s are on NUMA nodes %v, want one node", name, seen)
			}
		}
	})
}

// A GPU that a pod holds leaves the machine. Were its id to leave the list as well, the kubelet
// would crash at each later admission of that pod (a nil dereference).
func TestKubeletRestartWithAHeldGPUGone(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubeletWith("best-effort")
		p := n.startPlugin("--rescan-interval=100ms")
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(newPod("holder", gpuResource, 2))
		n.sim("gpu", "--gpu", k.devicesOf(pod, gpuResource)[0], "--remove")
		k.waitFor(gpuResource, 8, 7)

		k.restart()
		k.waitFor(gpuResource, 8, 7)
		withoutCrash(t, "the admission of a pod that holds a lost GPU", func() { _ = k.admit(pod) })
		k.mustAdmit(newPod("next", gpuResource, 4))
		p.mustRun()
	})
}

// The plugin, too, starts anew and cannot find the GPU: the kubelet's checkpoint tells of it.
func TestKubeletAndPluginRestartWithAHeldGPUGone(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubeletWith("single-numa-node")
		p := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(newPod("holder", gpuResource, 2))
		p.stop()
		n.sim("gpu", "--gpu", k.devicesOf(pod, gpuResource)[0], "--remove")
		n.startPlugin()
		k.waitFor(gpuResource, 8, 7)

		k.restart()
		k.waitFor(gpuResource, 8, 7)
		withoutCrash(t, "the admission of a pod that holds a lost GPU", func() { _ = k.admit(pod) })
		k.mustAdmit(newPod("next", gpuResource, 2))
	})
}
