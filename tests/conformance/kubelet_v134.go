//go:build kubelet134

package conformance

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

const (
	kubeletVersion                 = "1.34"
	keepsInstancesSideBySide       = false
	reportsDeviceHealthInPodStatus = false
)

// deviceManager is the kubelet's device manager together with the topology manager that asks it.
type deviceManager struct {
	devices  *devicemanager.ManagerImpl
	topology topologymanager.Manager
}

func newDeviceManager(numaNodes []int, policy string) (deviceManager, error) {
	nodes := machineNodes(devicemanager.NewManagerImpl, numaNodes)
	topology, err := topologymanager.NewManager(nodes, policy,
		"container", nil)
	if err != nil {
		return deviceManager{}, err
	}
	devices, err := devicemanager.NewManagerImpl(nodes, topology)
	if err != nil {
		return deviceManager{}, err
	}
	topology.AddHintProvider(devices)
	return deviceManager{devices, topology}, nil
}

func (m deviceManager) start(active func() []*v1.Pod, ready config.SourcesReady,
	containers containermap.ContainerMap, running sets.Set[string]) error {
	return m.devices.Start(active, ready, containers, running)
}

func (m deviceManager) stop() error { return m.devices.Stop() }

func (m deviceManager) capacity() (v1.ResourceList, v1.ResourceList, []string) {
	return m.devices.GetCapacity()
}

func (m deviceManager) admit(pod *v1.Pod) lifecycle.PodAdmitResult {
	return m.topology.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}

func (m deviceManager) runOptions(pod *v1.Pod,
	container *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return m.devices.GetDeviceRunContainerOptions(pod, container)
}

func (m deviceManager) topologyHints(pod *v1.Pod,
	container *v1.Container) map[string][]topologymanager.TopologyHint {
	return m.devices.GetTopologyHints(pod, container)
}

func (m deviceManager) healthyDevices() devicemanager.ResourceDeviceInstances {
	return m.devices.GetAllocatableDevices()
}

func (m deviceManager) freeDevicesOfEndedPods() { m.devices.UpdateAllocatedDevices() }

func (m deviceManager) updateResourceStatus(pod *v1.Pod, status *v1.PodStatus) {
	m.devices.UpdateAllocatedResourcesStatus(pod, status)
}

// machineNodes makes NUMA nodes of the type that the device manager takes. That type is of another
// module in each kubelet; naming it here would put both modules, and their ideas of everybody
// else's versions, into both go.mod files.
func machineNodes[Node any](
	_ func([]Node, topologymanager.Store) (*devicemanager.ManagerImpl, error), ids []int,
) []Node {
	nodes := make([]Node, len(ids))
	for i, id := range ids {
		reflect.ValueOf(&nodes[i]).Elem().FieldByName("Id").SetInt(int64(id))
	}
	return nodes
}
