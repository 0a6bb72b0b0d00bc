package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// kubelet plays the parts of a kubelet around its device manager: it knows the pods of the node,
// asks for admission as the kubelet does, and reads the capacity for the node's status.
type kubelet struct {
	n       *node
	policy  string
	manager deviceManager

	mu   sync.Mutex
	pods []*v1.Pod // admitted and not ended
}

// startKubelet starts a kubelet with the topology policy "none".
func (n *node) startKubelet() *kubelet { return n.startKubeletWith("none") }

func (n *node) startKubeletWith(topologyPolicy string) *kubelet {
	n.t.Helper()
	k := &kubelet{n: n, policy: topologyPolicy}
	k.start(nil)
	n.kubelet = k
	return k
}

// start begins with an empty memory apart from what the checkpoint in the plugin folder says.
func (k *kubelet) start(running []*v1.Pod) {
	k.n.t.Helper()
	manager, err := newDeviceManager([]int{0, 1}, k.policy)
	must(k.n.t, err)
	containers, runningIDs := containermap.NewContainerMap(), sets.New[string]()
	for _, pod := range running {
		for _, container := range pod.Spec.Containers {
			id := string(pod.UID) + "/" + container.Name
			containers.Add(string(pod.UID), container.Name, id)
			runningIDs.Insert(id)
		}
	}
	k.manager = manager
	must(k.n.t, manager.start(k.activePods, allSourcesReady{}, containers, runningIDs))
}

func (k *kubelet) stop() {
	k.n.t.Helper()
	must(k.n.t, k.manager.stop())
}

// die ends the kubelet as its process would end: nobody can register any more when the plugin hears
// of it. The device manager's own Stop lets go of its plugins first and serves registrations a
// moment longer, and a plugin that comes in that moment is held by a manager that lives on in this
// process, where a dead kubelet's connections would have ended.
func (k *kubelet) die() {
	k.n.t.Helper()
	if err := os.Remove(filepath.Join(pluginDir, "kubelet.sock")); !errors.Is(err, fs.ErrNotExist) {
		must(k.n.t, err)
	}
	k.stop()
}

// restart ends this kubelet and starts its successor in the same folder. The pods go on running.
func (k *kubelet) restart() {
	k.n.t.Helper()
	k.die()
	k.start(k.activePods())
}

func (k *kubelet) activePods() []*v1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.pods)
}

// admit decides on a pod as the kubelet does, one container after the other.
func (k *kubelet) admit(pod *v1.Pod) error {
	k.mu.Lock()
	if !slices.Contains(k.pods, pod) {
		k.pods = append(k.pods, pod)
	}
	k.mu.Unlock()
	result := k.manager.admit(pod)
	if result.Admit {
		return nil
	}
	k.forget(pod)
	return fmt.Errorf("%s: %s", result.Reason, result.Message)
}

func (k *kubelet) mustAdmit(pod *v1.Pod) *v1.Pod {
	k.n.t.Helper()
	if err := k.admit(pod); err != nil {
		k.n.t.Fatalf("pod %s was rejected: %v", pod.Name, err)
	}
	return pod
}

// end lets a pod terminate: its devices are free afterwards.
func (k *kubelet) end(pods ...*v1.Pod) {
	for _, pod := range pods {
		k.forget(pod)
	}
	k.manager.freeDevicesOfEndedPods()
}

func (k *kubelet) forget(pod *v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.DeleteFunc(k.pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
}

// devicesOf lists, sorted, the ids of a resource that the first container of a pod holds.
func (k *kubelet) devicesOf(pod *v1.Pod, resource string) []string {
	return sortedIDs(k.manager.devices.GetDevices(string(pod.UID),
		pod.Spec.Containers[0].Name)[resource])
}

// healthyIDs lists, sorted, the ids of a resource that could be handed out.
func (k *kubelet) healthyIDs(resource string) []string {
	return sortedIDs(k.manager.healthyDevices()[resource])
}

func sortedIDs(devices devicemanager.DeviceInstances) []string {
	ids := []string{}
	for id := range devices {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// offer is what the node's status says of one resource.
type offer struct {
	known                 bool
	capacity, allocatable int64
}

func (o offer) String() string {
	if !o.known {
		return "the kubelet does not know the resource"
	}
	return fmt.Sprintf("capacity %d, allocatable %d", o.capacity, o.allocatable)
}

func (k *kubelet) offer(resource string) offer {
	capacity, allocatable, _ := k.manager.capacity()
	c, known := capacity[v1.ResourceName(resource)]
	a := allocatable[v1.ResourceName(resource)]
	return offer{known, c.Value(), a.Value()}
}

// waitFor waits until the node offers a resource in these numbers.
func (k *kubelet) waitFor(resource string, capacity, allocatable int64) {
	k.n.t.Helper()
	k.waitForWithin(patience, resource, capacity, allocatable)
}

func (k *kubelet) waitForWithin(limit time.Duration, resource string, capacity, allocatable int64) {
	k.n.t.Helper()
	want := offer{true, capacity, allocatable}
	eventually(k.n.t, limit, fmt.Sprintf("%s: %v", resource, want), func() (bool, string) {
		now := k.offer(resource)
		return now == want, now.String()
	})
}

// staysAt fails when the node's offer of a resource changes within the span.
func (k *kubelet) staysAt(span time.Duration, resource string, capacity, allocatable int64) {
	k.n.t.Helper()
	want := offer{true, capacity, allocatable}
	throughout(k.n.t, span, fmt.Sprintf("%s: %v", resource, want), func() (bool, string) {
		now := k.offer(resource)
		return now == want, now.String()
	})
}

// streamsEnded counts the plugins that any kubelet of this test has seen go.
func (n *node) streamsEnded() int {
	n.t.Helper()
	klog.Flush()
	log, err := os.ReadFile(n.klog)
	must(n.t, err)
	return strings.Count(string(log), "ListAndWatch ended unexpectedly")
}

// startAnother starts a further plugin and waits until the kubelet has its list.
func (k *kubelet) startAnother(args ...string) *plugin {
	k.n.t.Helper()
	p := k.n.startPlugin(args...)
	// The older instance may send a list meanwhile, so its own word counts first.
	eventually(k.n.t, patience, "another instance is registered", func() (bool, string) {
		log, err := os.ReadFile(p.logFile)
		return err == nil && strings.Contains(string(log), " registered resource="), string(log)
	})
	time.Sleep(settled / 4) // its first list is on the way
	return p
}

// noFailedRegistration checks that the kubelet never dialled a socket in vain: each time costs the
// node ten seconds.
func (k *kubelet) noFailedRegistration() {
	k.n.t.Helper()
	klog.Flush()
	log, err := os.ReadFile(k.n.klog)
	must(k.n.t, err)
	for line := range strings.Lines(string(log)) {
		// A kubelet that is stopped while it dials has not dialled in vain.
		// Nor has one that lets go of the client itself meanwhile.
		canceled := strings.Contains(line, "context canceled") ||
			strings.Contains(line, "the client connection is closing")
		if strings.Contains(line, "Error connecting to device plugin client") && !canceled {
			k.n.t.Errorf("a registration failed: %s", line)
		}
	}
}

// options are what the container runtime would get for the first container of a pod.
func (k *kubelet) options(pod *v1.Pod) *devicemanager.DeviceRunContainerOptions {
	k.n.t.Helper()
	options, err := k.manager.runOptions(pod, &pod.Spec.Containers[0])
	if err != nil {
		k.n.t.Fatalf("start a container of pod %s: %v", pod.Name, err)
	}
	return options
}

// env returns one variable of those in options.
func env(options *devicemanager.DeviceRunContainerOptions, name string) (string, bool) {
	for _, variable := range options.Envs {
		if variable.Name == name {
			return variable.Value, true
		}
	}
	return "", false
}

// allSourcesReady says that the kubelet has heard of all its pods.
type allSourcesReady struct{}

func (allSourcesReady) AddSource(string) {}
func (allSourcesReady) AllReady() bool   { return true }

// withoutCrash runs what once crashed the kubelet, and fails with the panic's text.
func withoutCrash(t *testing.T, what string, run func()) {
	t.Helper()
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("the kubelet crashed in %s: %v", what, fault)
		}
	}()
	run()
}
