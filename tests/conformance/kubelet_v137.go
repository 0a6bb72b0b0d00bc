//go:build !kubelet134

package conformance

import (
	"context"
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

const (
	kubeletVersion = "1.37"
	// From 1.37 on, two registrations of one resource live side by side; before, the newer one
	// replaces the older and dies with it.
	keepsInstancesSideBySide = true
	// ResourceHealthStatus is on by default from 1.36 on.
	reportsDeviceHealthInPodStatus = true
)

// deviceManager is the kubelet's device manager together with the topology manager that asks it.
type deviceManager struct {
	devices  *devicemanager.ManagerImpl
	topology topologymanager.Manager
}

func newDeviceManager(numaNodes []int, policy string) (deviceManager, error) {
	nodes := machineNodes(devicemanager.NewManagerImpl, numaNodes)
	logger := klog.Background()
	topology, err := topologymanager.NewManager(logger, nodes, policy,
		topologymanager.ContainerTopologyScope, nil)
	if err != nil {
		return deviceManager{}, err
	}
	devices, err := devicemanager.NewManagerImpl(logger, nodes, topology)
	if err != nil {
		return deviceManager{}, err
	}
	topology.AddHintProvider(logger, devices)
	return deviceManager{devices, topology}, nil
}

func (m deviceManager) start(active func() []*v1.Pod, ready config.SourcesReady,
	containers containermap.ContainerMap, running sets.Set[string]) error {
	return m.devices.Start(klog.Background(), active, ready, containers, running)
}

func (m deviceManager) stop() error { return m.devices.Stop(klog.Background()) }

func (m deviceManager) capacity() (v1.ResourceList, v1.ResourceList, []string) {
	return m.devices.GetCapacity(klog.Background())
}

func (m deviceManager) admit(pod *v1.Pod) lifecycle.PodAdmitResult {
	return m.topology.Admit(context.Background(), &lifecycle.PodAdmitAttributes{
		Pod: pod, Operation: lifecycle.AddOperation,
	})
}

func (m deviceManager) runOptions(pod *v1.Pod,
	container *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return m.devices.GetDeviceRunContainerOptions(context.Background(), pod, container)
}

func (m deviceManager) topologyHints(pod *v1.Pod,
	container *v1.Container) map[string][]topologymanager.TopologyHint {
	return m.devices.GetTopologyHints(klog.Background(), pod, container, lifecycle.AddOperation)
}

func (m deviceManager) healthyDevices() devicemanager.ResourceDeviceInstances {
	return m.devices.GetAllocatableDevices(klog.Background())
}

func (m deviceManager) freeDevicesOfEndedPods() { m.devices.UpdateAllocatedDevices(klog.Background()) }

func (m deviceManager) updateResourceStatus(pod *v1.Pod, status *v1.PodStatus) {
	m.devices.UpdateAllocatedResourcesStatus(klog.Background(), pod, status)
}

// machineNodes makes NUMA nodes of the type that the device manager takes. That type is of another
// module in each kubelet; naming it here would put both modules, and their ideas of everybody
// else's versions, into both go.mod files.
func machineNodes[Node any](
	_ func(klog.Logger, []Node, topologymanager.Store) (*devicemanager.ManagerImpl, error), ids []int,
) []Node {
	nodes := make([]Node, len(ids))
	for i, id := range ids {
		reflect.ValueOf(&nodes[i]).Elem().FieldByName("Id").SetInt(int64(id))
	}
	return nodes
}
