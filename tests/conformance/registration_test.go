package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNodeOffersEveryGPU(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)

		var want []string
		for _, gpu := range n.gpus() {
			want = append(want, gpu.uuid)
		}
		slices.Sort(want)
		if got := k.healthyIDs(gpuResource); !slices.Equal(got, want) {
			t.Errorf("the kubelet lists the devices\n%q, but NVML has\n%q", got, want)
		}
	})
}

// A socket path belongs to one registration, so its name must tell more than the resource.
func TestSocketPathBelongsToOneRegistration(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		first := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		before := n.sockets()
		if len(before) != 1 || !strings.HasPrefix(filepath.Base(before[0]), "nvidia-gpu-") {
			t.Fatalf("sockets beside kubelet.sock: %q, want one nvidia-gpu-*.sock", before)
		}

		first.stop()
		if left := n.sockets(); len(left) != 0 {
			t.Fatalf("sockets left behind after SIGTERM: %q", left)
		}
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		if after := n.sockets(); slices.Equal(before, after) {
			t.Errorf("the second registration took the path of the first one, %q", after)
		}
	})
}

// The kubelet removes every socket in its folder, the plugin's own too, before kubelet.sock is
// there. A plugin that registers a removed socket costs the node ten seconds.
func TestKubeletStartsAfterThePlugin(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		p := n.startPlugin()
		eventually(t, patience, "the plugin serves before there is a kubelet", func() (bool, string) {
			return len(n.sockets()) > 0, "no socket in " + pluginDir
		})
		k := n.startKubelet()
		k.waitFor(gpuResource, 8, 8)
		k.staysAt(time.Second, gpuResource, 8, 8)
		k.noFailedRegistration()
		p.mustRun()
	})
}

// The kubelet's start falls into every moment of the plugin's.
func TestKubeletStartsWhileThePluginRegisters(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		for _, delay := range []time.Duration{0, 2, 5, 8, 12, 20, 40} {
			k := n.startKubelet()
			p := n.startPlugin()
			time.Sleep(delay * time.Millisecond)
			k.restart()
			k.waitFor(gpuResource, 8, 8)
			k.staysAt(settled, gpuResource, 8, 8)
			pod := k.mustAdmit(newPod(fmt.Sprintf("after-%d", delay), gpuResource, 1))
			k.end(pod)
			k.noFailedRegistration()
			p.stop()
			k.stop()
		}
	})
}

func TestKubeletRestartsAgainAndAgain(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPlugin()
		for range 5 {
			k.waitFor(gpuResource, 8, 8)
			k.restart()
		}
		k.waitFor(gpuResource, 8, 8)
		k.staysAt(time.Second, gpuResource, 8, 8)
		k.noFailedRegistration()
		p.mustRun()
		if left := n.sockets(); len(left) != 1 {
			t.Errorf("sockets after five restarts of the kubelet: %q, want one", left)
		}
	})
}

// Garbage on the plugin's socket is somebody's mistake, not a reason to lose the registration.
func TestGarbageOnTheSocketIsIgnored(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		for _, garbage := range []string{"", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 4096)} {
			n.sendBytes(n.sockets()[0], garbage)
		}
		k.staysAt(settled, gpuResource, 8, 8)
		k.mustAdmit(newPod("afterwards", gpuResource, 1))
		p.mustRun()
	})
}
