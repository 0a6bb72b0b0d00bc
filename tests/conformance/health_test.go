package conformance

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// quickRecovery lets a GPU come back within a test's patience.
const quickRecovery = `version: v1
health:
  recovery:
    holdOff: 1s
    probeInterval: 100ms
`

// startPluginWithConfig starts the plugin with a config file, which the test may change later.
func (n *node) startPluginWithConfig(config string, args ...string) *plugin {
	n.t.Helper()
	file := n.write("config.yaml", config)
	return n.startPlugin(append([]string{"--config-file=" + file}, args...)...)
}

func TestFaultMakesAGPUUnhealthyAndItComesBack(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(quickRecovery)
		k.waitFor(gpuResource, 8, 8)
		// Another GPU each time: a relapse is held off for longer.
		for _, gpu := range []int{3, 5} {
			n.sim("fault", "--gpu", fmt.Sprint(gpu), "--xid", "79")
			k.waitFor(gpuResource, 8, 7)
			if faulty := n.gpus()[gpu].uuid; slices.Contains(k.healthyIDs(gpuResource), faulty) {
				t.Errorf("GPU %d (%s) had the fault, but another one is unhealthy", gpu, faulty)
			}
			n.sim("clear")
			k.waitFor(gpuResource, 8, 8)
		}
	})
}

// An application's own error is not the GPU's.
func TestApplicationErrorLeavesTheGPUHealthy(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		n.sim("fault", "--gpu", "3", "--xid", "13")
		n.sim("fault", "--gpu", "4", "--xid", "31")
		k.staysAt(settled, gpuResource, 8, 8)
	})
}

func TestUnhealthyGPUIsNotHandedOut(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		faulty := n.gpus()[0].uuid
		n.sim("fault", "--gpu", "0", "--xid", "79")
		k.waitFor(gpuResource, 8, 7)
		pod := k.mustAdmit(newPod("seven", gpuResource, 7))
		if slices.Contains(k.devicesOf(pod, gpuResource), faulty) {
			t.Errorf("the pod was given the faulty GPU %s", faulty)
		}
		if err := k.admit(newPod("eighth", gpuResource, 1)); err == nil {
			t.Error("an eighth GPU was handed out although it is unhealthy")
		}
	})
}

// The pod's own status follows what happens to the GPU that it holds.
func TestPodStatusShowsTheUnhealthyGPU(t *testing.T) {
	if !reportsDeviceHealthInPodStatus {
		t.Skipf("kubelet %s does not report device health in pod status", kubeletVersion)
	}
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPluginWithConfig(quickRecovery)
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(newPod("all", gpuResource, 8))
		faulty := n.gpus()[5].uuid
		health := func() (v1.ResourceHealthStatus, int) {
			status := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "main"}}}
			k.manager.updateResourceStatus(pod, &status)
			seen, unhealthy := v1.ResourceHealthStatus("absent"), 0
			for _, resource := range status.ContainerStatuses[0].AllocatedResourcesStatus {
				for _, device := range resource.Resources {
					if device.Health != v1.ResourceHealthStatusHealthy {
						unhealthy++
					}
					if string(device.ResourceID) == faulty {
						seen = device.Health
					}
				}
			}
			return seen, unhealthy
		}
		for _, step := range []struct {
			act       func()
			want      v1.ResourceHealthStatus
			unhealthy int
		}{
			{func() { n.sim("fault", "--gpu", "5", "--xid", "79") }, v1.ResourceHealthStatusUnhealthy, 1},
			{func() { n.sim("clear") }, v1.ResourceHealthStatusHealthy, 0},
		} {
			step.act()
			eventually(t, patience, "GPU 5 is "+string(step.want), func() (bool, string) {
				seen, unhealthy := health()
				return seen == step.want && unhealthy == step.unhealthy, string(seen)
			})
		}
	})
}

// DP_DISABLE_HEALTHCHECKS=all is a promise that nothing turns unhealthy.
func TestHealthChecksCanBeTurnedOff(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin("DP_DISABLE_HEALTHCHECKS=all")
		k.waitFor(gpuResource, 8, 8)
		n.sim("fault", "--gpu", "3", "--xid", "79")
		k.staysAt(settled, gpuResource, 8, 8)
	})
}
