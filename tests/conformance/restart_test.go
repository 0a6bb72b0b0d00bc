package conformance

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestPluginRestart(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(newPod("lives-on", gpuResource, 3))
		held := k.devicesOf(pod, gpuResource)

		p.stop()
		// SIGTERM sends no empty list: the node keeps its capacity for the successor.
		k.waitFor(gpuResource, 8, 0)
		k.staysAt(settled, gpuResource, 8, 0)

		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		if now := k.devicesOf(pod, gpuResource); !slices.Equal(now, held) {
			t.Errorf("the pod held %q before the restart and holds %q now", held, now)
		}
		wantVisibleDevices(t, k.options(pod), visible(n, held))
		other := k.mustAdmit(newPod("new", gpuResource, 5))
		if both := common(held, k.devicesOf(other, gpuResource)); len(both) != 0 {
			t.Errorf("handed out twice: %q", both)
		}
	})
}

// visible is the environment value for these full GPUs: in the order of their indices.
func visible(n *node, ids []string) string {
	var value string
	for _, gpu := range n.gpus() {
		if slices.Contains(ids, gpu.uuid) {
			if value != "" {
				value += ","
			}
			value += gpu.uuid
		}
	}
	return value
}

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(id string) bool { return !slices.Contains(b, id) })
}

// A plugin that crashes and is back before the kubelet has noticed: were its socket path the same,
// kubelet 1.37 would refuse it for ever and go on advertising what nobody serves.
func TestPluginKilledAndStartedAtOnce(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		for i := range 5 {
			before := n.streamsEnded()
			p.signal(syscall.SIGKILL)
			p = n.startPlugin()
			// Until the kubelet has noticed, the old list and the old address are in force.
			eventually(t, patience, "the kubelet notices the end", func() (bool, string) {
				return n.streamsEnded() > before, "no stream has ended"
			})
			k.staysUsable(fmt.Sprintf("after-kill-%d", i))
		}
		p.stop()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		if left := n.sockets(); len(left) != 1 {
			t.Errorf("sockets after five kills: %q, want one: dead ones are removed at start", left)
		}
	})
}

// staysUsable waits until all eight GPUs are offered for good, and checks that somebody serves
// them.
func (k *kubelet) staysUsable(podName string) {
	k.n.t.Helper()
	// Right after a kill the old list may still be in force, so a look is not enough.
	time.Sleep(settled)
	k.waitFor(gpuResource, 8, 8)
	k.staysAt(settled, gpuResource, 8, 8)
	pod := k.mustAdmit(newPod(podName, gpuResource, 8))
	k.end(pod)
}

func TestKubeletRestartKeepsWhatPodsHold(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		pods := []string{"a", "b", "c"}
		held := map[string][]string{}
		for i, name := range pods {
			held[name] = k.devicesOf(k.mustAdmit(newPod(name, gpuResource, i+1)), gpuResource)
		}

		k.restart()
		k.waitFor(gpuResource, 8, 8)
		for _, pod := range k.activePods() {
			k.mustAdmit(pod) // a kubelet that starts admits its pods anew
			if now := k.devicesOf(pod, gpuResource); !slices.Equal(now, held[pod.Name]) {
				t.Errorf("pod %s held %q before and %q after", pod.Name, held[pod.Name], now)
			}
			wantVisibleDevices(t, k.options(pod), visible(n, held[pod.Name]))
		}
		rest := k.mustAdmit(newPod("rest", gpuResource, 2))
		for name, ids := range held {
			if both := common(ids, k.devicesOf(rest, gpuResource)); len(both) != 0 {
				t.Errorf("%q of pod %s were handed out again", both, name)
			}
		}
	})
}

// Such a pod is rejected, after a kubelet restart, unless its devices are there and healthy.
func TestKubeletRestartWithAFinishedInitContainer(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(withInitContainer(newPod("with-init", gpuResource, 8)))
		for range 3 {
			k.restart()
			k.waitFor(gpuResource, 8, 8)
			k.mustAdmit(pod)
		}
	})
}

// Both at once, as after a node's reboot, in both orders.
func TestKubeletAndPluginRestartTogether(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		k.stop()
		p.stop()
		p = n.startPlugin()
		k.start(nil)
		k.staysUsable("plugin-first")

		p.stop()
		k.restart()
		n.startPlugin()
		k.staysUsable("kubelet-first")
	})
}
