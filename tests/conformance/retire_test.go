package conformance

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

const renamed = `version: v1
flags: { plugin: { enableResourceNaming: true } }
resources: { gpus: [ { pattern: "*H100*", name: h100 } ] }
`

// The kubelet must have had an id as Unhealthy for ten seconds before it may go.
const retirement = 10*time.Second + patience

// A full GPU that vanishes is lost, not gone: the node says eight, and seven can be used.
func TestVanishedGPUStaysListed(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(quickRecovery, "--rescan-interval=100ms")
		k.waitFor(gpuResource, 8, 8)
		vanishing := n.gpus()[6].uuid
		n.sim("gpu", "--gpu", vanishing, "--remove")
		k.waitFor(gpuResource, 8, 7)
		k.staysAt(settled, gpuResource, 8, 7)
		n.sim("gpu", "--gpu", vanishing, "--add")
		k.waitFor(gpuResource, 8, 8)
	})
}

// A resource that the configuration renames while pods hold some of it stays until they are gone.
func TestHeldResourceIsNotRetired(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPluginWithConfig("version: v1\n")
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(newPod("holder", gpuResource, 2))

		n.write("config.yaml", renamed)
		p.signal(syscall.SIGHUP)
		k.waitFor("nvidia.com/h100", 8, 6) // what the pod holds is not offered under another name
		eventually(t, patience, "no nvidia.com/gpu can be allocated", func() (bool, string) {
			now := k.offer(gpuResource)
			return now.known && now.allocatable == 0, now.String()
		})
		other := k.mustAdmit(newPod("new", "nvidia.com/h100", 6))
		// Its containers can still restart.
		k.options(pod)
		time.Sleep(settled)
		k.options(pod)

		k.end(pod)
		// The kubelet writes down what pods hold only when it allocates or gets a list.
		k.end(other)
		k.mustAdmit(newPod("next", "nvidia.com/h100", 1))
		k.waitForWithin(retirement, gpuResource, 0, 0)
		k.waitFor("nvidia.com/h100", 8, 8)
	})
}

func TestResourceThatNobodyHoldsIsRetired(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPluginWithConfig("version: v1\n")
		k.waitFor(gpuResource, 8, 8)
		n.write("config.yaml", renamed)
		p.signal(syscall.SIGHUP)
		k.waitFor("nvidia.com/h100", 8, 8)
		k.waitForWithin(retirement, gpuResource, 0, 0)
		eventually(t, patience, "the retired resource's socket is removed", func() (bool, string) {
			left := strings.Join(n.sockets(), " ")
			return !strings.Contains(left, "nvidia-gpu-"), left
		})
	})
}

// A configuration that does not resolve leaves everything as it was.
func TestBrokenConfigurationChangesNothing(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		p := n.startPluginWithConfig("version: v1\n")
		k.waitFor(gpuResource, 8, 8)
		for _, broken := range []string{"version: v9\n", "sharing: [", "sharing: {timeSlicing: 4}\n"} {
			n.write("config.yaml", broken)
			p.signal(syscall.SIGHUP)
			k.staysAt(settled, gpuResource, 8, 8)
		}
		k.mustAdmit(newPod("afterwards", gpuResource, 8))
		p.mustRun()
	})
}
