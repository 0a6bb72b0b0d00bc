package conformance

import (
	"slices"
	"strings"
	"testing"
)

func v1Config(lines ...string) string { return "version: v1\n" + strings.Join(lines, "\n") + "\n" }

func TestTimeSlicing(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(v1Config("sharing: {timeSlicing: {resources: " +
			"[{name: nvidia.com/gpu, replicas: 4}]}}"))
		k.waitFor(gpuResource, 32, 32)
		for i := range 2 {
			pod := k.mustAdmit(newPod([]string{"one", "two"}[i], gpuResource, i+1))
			var want []string
			for _, id := range k.devicesOf(pod, gpuResource) {
				gpu, replica, shared := strings.Cut(id, "::")
				if !shared || replica == "" {
					t.Errorf("the device id %s has no replica number", id)
				}
				if !slices.Contains(want, gpu) {
					want = append(want, gpu)
				}
			}
			wantVisibleDevices(t, k.options(pod), visible(n, want))
		}
	})
}

// Replicas are spread: eight requests for one land on eight GPUs.
func TestReplicasAreDistributed(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(v1Config("sharing: {timeSlicing: {resources: " +
			"[{name: nvidia.com/gpu, replicas: 4}]}}"))
		k.waitFor(gpuResource, 32, 32)
		pod := k.mustAdmit(newPod("eight", gpuResource, 8))
		var gpus []string
		for _, id := range k.devicesOf(pod, gpuResource) {
			gpu, _, _ := strings.Cut(id, "::")
			gpus = append(gpus, gpu)
		}
		slices.Sort(gpus)
		if distinct := slices.Compact(slices.Clone(gpus)); len(distinct) != 8 {
			t.Errorf("eight replicas are on %d GPUs, want one on each of eight: %q", len(distinct), gpus)
		}
	})
}

func TestSharedRequestAboveOneCanBeRefused(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(v1Config("sharing: {timeSlicing: {renameByDefault: true, " +
			"failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 2}]}}"))
		const shared = "nvidia.com/gpu.shared"
		k.waitFor(shared, 16, 16)
		k.mustAdmit(newPod("one", shared, 1))
		err := k.admit(newPod("two", shared, 2))
		if err == nil {
			t.Fatal("a request for two replicas was admitted")
		}
		for _, word := range []string{"failRequestsGreaterThanOne", shared, "1", "2"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the refusal does not mention %q: %v", word, err)
			}
		}
	})
}

// One GPU is shared under a name of its own, the others stay exclusive.
func TestRenamedSharedResource(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(v1Config("flags: {plugin: {enableResourceNaming: true}}",
			"sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, rename: nvidia.com/gpu.dev, "+
				"devices: [0], replicas: 4}]}}"))
		k.waitFor("nvidia.com/gpu.dev", 4, 4)
		k.waitFor(gpuResource, 7, 7)
		pod := k.mustAdmit(newPod("dev", "nvidia.com/gpu.dev", 1))
		wantVisibleDevices(t, k.options(pod), n.gpus()[0].uuid)
	})
}

func TestResourcesByPattern(t *testing.T) {
	onNode(t, "mixed", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(v1Config("resources: {gpus: [{pattern: '*A100*', name: a100}, "+
			"{pattern: '*T4*', name: t4}]}"), "--enable-resource-naming")
		k.waitFor("nvidia.com/a100", 2, 2)
		k.waitFor("nvidia.com/t4", 2, 2)
		pod := k.mustAdmit(newPod("t4", "nvidia.com/t4", 1))
		for _, gpu := range n.gpus() {
			if gpu.uuid == k.devicesOf(pod, "nvidia.com/t4")[0] && !strings.Contains(gpu.name, "T4") {
				t.Errorf("nvidia.com/t4 handed out a %s", gpu.name)
			}
		}
	})
}
