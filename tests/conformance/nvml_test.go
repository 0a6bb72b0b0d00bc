package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// expected is a machine of the simulator as its profile describes it.
type expected struct {
	profile   string
	names     []string // one per GPU
	memoryMiB []uint64
	busIDs    []string
	migModes  bool     // whether the GPUs can be in MIG mode at all
	links     [][2]int // number of NVLinks of GPU 0 to each GPU; {-1, n}: to switches
}

var machines = []expected{
	{
		profile:   "dgx-h100",
		names:     repeated("NVIDIA H100 80GB HBM3", 8),
		memoryMiB: repeated[uint64](81920, 8),
		busIDs:    []string{"1B", "43", "52", "61", "9D", "C3", "D1", "DF"},
		migModes:  true,
		links:     [][2]int{{-1, 18}},
	},
	{
		profile:   "dgx1-v100",
		names:     repeated("Tesla V100-SXM2-16GB", 8),
		memoryMiB: repeated[uint64](16384, 8),
		busIDs:    []string{"06", "07", "0A", "0B", "85", "86", "89", "8A"},
		links:     [][2]int{{1, 1}, {2, 1}, {3, 2}, {4, 2}},
	},
	{
		profile:   "mixed",
		names:     append(repeated("Tesla T4", 2), repeated("NVIDIA A100-PCIE-40GB", 2)...),
		memoryMiB: append(repeated[uint64](15360, 2), repeated[uint64](40960, 2)...),
		busIDs:    []string{"3B", "3C", "AF", "B0"},
	},
}

func repeated[T any](value T, count int) []T {
	all := make([]T, count)
	for i := range all {
		all[i] = value
	}
	return all
}

// NVIDIA's own Go bindings see the machine that the profile describes.
func testProfile(t *testing.T, want expected) {
	onNode(t, want.profile, func(n *node) {
		seen := map[string]bool{}
		gpus := n.gpus()
		if len(gpus) != len(want.names) {
			t.Fatalf("NVML counts %d GPUs, the profile has %d", len(gpus), len(want.names))
		}
		for i, gpu := range gpus {
			if gpu.index != i || gpu.name != want.names[i] || gpu.memoryMiB != want.memoryMiB[i] {
				t.Errorf("GPU %d is %+v, want %s with %d MiB", i, gpu, want.names[i], want.memoryMiB[i])
			}
			if bus := fmt.Sprintf("00000000:%s:00.0", want.busIDs[i]); gpu.busID != bus {
				t.Errorf("GPU %d is at %s, want %s", i, gpu.busID, bus)
			}
			if gpu.migMode {
				t.Errorf("GPU %d is in MIG mode without anybody's doing", i)
			}
			if !strings.HasPrefix(gpu.uuid, "GPU-") || seen[gpu.uuid] {
				t.Errorf("GPU %d has the UUID %q, want one of its own", i, gpu.uuid)
			}
			seen[gpu.uuid] = true
		}
		n.session(func(library nvml.Interface) { checkDevices(n, library, gpus, want) })
	})
}

func checkDevices(n *node, library nvml.Interface, gpus []gpu, want expected) {
	links := map[int]int{}
	for i, gpu := range gpus {
		byUUID, ret := library.DeviceGetHandleByUUID(gpu.uuid)
		n.ok("find a GPU by its UUID", ret)
		byBus, ret := library.DeviceGetHandleByPciBusId(gpu.busID)
		n.ok("find a GPU by its PCI id", ret)
		for _, device := range []nvml.Device{byUUID, byBus} {
			if index, _ := device.GetIndex(); index != i {
				n.t.Errorf("GPU %d is found as GPU %d", i, index)
			}
		}
		if _, _, ret := byUUID.GetMigMode(); want.migModes && ret != nvml.SUCCESS {
			n.t.Errorf("GPU %d: the MIG mode cannot be read: %d", i, int(ret))
		}
		if i != 0 {
			continue
		}
		for link := range nvml.NVLINK_MAX_LINKS {
			if state, ret := byUUID.GetNvLinkState(link); ret != nvml.SUCCESS ||
				state != nvml.FEATURE_ENABLED {
				continue
			}
			remote, ret := byUUID.GetNvLinkRemotePciInfo(link)
			n.ok("read a link's other end", ret)
			links[peer(gpus, remote)]++
		}
	}
	wanted := map[int]int{}
	for _, link := range want.links {
		wanted[link[0]] = link[1]
	}
	if fmt.Sprint(links) != fmt.Sprint(wanted) {
		n.t.Errorf("GPU 0 has links (peer: count) %v, want %v", links, wanted)
	}
}

// peer is the index of the GPU at a link's other end, -1 for a switch.
func peer(gpus []gpu, remote nvml.PciInfo) int {
	for _, gpu := range gpus {
		if gpu.busID == busID(remote) {
			return gpu.index
		}
	}
	return -1
}

func TestGoBindingsSeeADGXH100(t *testing.T)     { testProfile(t, machines[0]) }
func TestGoBindingsSeeADGX1(t *testing.T)        { testProfile(t, machines[1]) }
func TestGoBindingsSeeAMixedServer(t *testing.T) { testProfile(t, machines[2]) }
