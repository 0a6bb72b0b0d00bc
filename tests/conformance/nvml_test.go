package conformance

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

var uuidForm = regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// NVIDIA's own Go bindings see every machine that the simulator plays as its profile describes it.
func TestGoBindingsSeeEveryProfile(t *testing.T) {
	for _, name := range allProfiles(t) {
		t.Run(name, func(t *testing.T) {
			onNode(t, name, func(n *node) {
				p := readProfile(t, name)
				if len(p.gpus()) == 0 {
					n.checkNoNVML()
					return
				}
				n.session(func(library nvml.Interface) { checkMachine(n, library, &p) })
				n.checkMIG(&p)
			})
		})
	}
}

// checkNoNVML: nodes without a driver, and those whose driver has no NVML, have no library either.
func (n *node) checkNoNVML() {
	n.t.Helper()
	found, err := filepath.Glob(filepath.Join(n.driverRoot(), "usr/lib/*/libnvidia-ml.so*"))
	must(n.t, err)
	if len(found) != 0 {
		n.t.Fatalf("a machine without NVML has %q", found)
	}
	path := filepath.Join(n.driverRoot(), "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
	if ret := nvml.New(nvml.WithLibraryPath(path)).Init(); ret != nvml.ERROR_LIBRARY_NOT_FOUND {
		n.t.Errorf("Init without a library returns %d, want LIBRARY_NOT_FOUND", int(ret))
	}
}

func checkMachine(n *node, library nvml.Interface, p *profile) {
	n.t.Helper()
	driver, ret := library.SystemGetDriverVersion()
	n.ok("read the driver's version", ret)
	if driver != p.Driver {
		n.t.Errorf("the driver is %s, want %s", driver, p.Driver)
	}
	want, status := p.gpus(), n.simStatus()
	count, ret := library.DeviceGetCount()
	n.ok("count the GPUs", ret)
	if count != len(want) || len(status) != len(want) {
		n.t.Fatalf("NVML counts %d GPUs and ndp-sim %d, the profile has %d", count, len(status),
			len(want))
	}
	devices := make([]nvml.Device, count)
	seen := map[string]bool{}
	for i := range devices {
		devices[i], ret = library.DeviceGetHandleByIndex(i)
		n.ok("open a GPU", ret)
		got := n.readGPU(devices[i])
		wanted := gpu{index: i, minor: i, uuid: status[i].UUID, name: want[i].Name,
			busID: want[i].busID, memoryMiB: want[i].MemoryMiB}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			n.t.Errorf("GPU %d is %+v, want %+v", i, got, wanted)
		}
		if !uuidForm.MatchString(got.uuid) || seen[got.uuid] {
			n.t.Errorf("GPU %d has the UUID %q, want one of its own", i, got.uuid)
		}
		seen[got.uuid] = true
		n.checkKind(i, devices[i], &want[i])
		n.checkLookups(library, i, got)
		if numa := n.numaNode(got); numa != want[i].numa {
			n.t.Errorf("GPU %d is on NUMA node %d, want %d", i, numa, want[i].numa)
		}
	}
	n.checkLinks(devices, p)
	n.checkTopology(devices, p)
}

// checkKind compares what all GPUs of one kind have in common, beside name and memory.
func (n *node) checkKind(i int, device nvml.Device, want *profileGPU) {
	n.t.Helper()
	major, minor, ret := device.GetCudaComputeCapability()
	n.ok("read the compute capability", ret)
	if got := fmt.Sprintf("%d.%d", major, minor); got != want.ComputeCapability {
		n.t.Errorf("GPU %d has compute capability %s, want %s", i, got, want.ComputeCapability)
	}
	architecture, ret := device.GetArchitecture()
	n.ok("read the architecture", ret)
	if uint32(architecture) != want.Architecture {
		n.t.Errorf("GPU %d has architecture %d, want %d", i, architecture, want.Architecture)
	}
	pci, ret := device.GetPciInfo()
	n.ok("read the PCI ids", ret)
	if pci.PciDeviceId != want.PCIID || pci.PciSubSystemId != want.SubsystemID {
		n.t.Errorf("GPU %d has PCI ids %#x and %#x, want %#x and %#x", i, pci.PciDeviceId,
			pci.PciSubSystemId, want.PCIID, want.SubsystemID)
	}
	current, pending, ret := device.GetMigMode()
	wanted := nvml.SUCCESS
	if want.MIG == "" {
		wanted = nvml.ERROR_NOT_SUPPORTED
	}
	if ret != wanted || current != nvml.DEVICE_MIG_DISABLE || pending != nvml.DEVICE_MIG_DISABLE {
		n.t.Errorf("GPU %d answers %d for its MIG mode, now %d and pending %d; want %d and off", i,
			int(ret), current, pending, int(wanted))
	}
}

func (n *node) checkLookups(library nvml.Interface, i int, g gpu) {
	n.t.Helper()
	byUUID, ret := library.DeviceGetHandleByUUID(g.uuid)
	n.ok("find a GPU by its UUID", ret)
	byBus, ret := library.DeviceGetHandleByPciBusId(g.busID)
	n.ok("find a GPU by its PCI id", ret)
	for _, device := range []nvml.Device{byUUID, byBus} {
		if index, ret := device.GetIndex(); ret != nvml.SUCCESS || index != i {
			n.t.Errorf("GPU %d is found as GPU %d", i, index)
		}
	}
}

// checkLinks compares every link of every GPU: how many lead to each other GPU and to switches.
func (n *node) checkLinks(devices []nvml.Device, p *profile) {
	n.t.Helper()
	want := p.gpus()
	var fabric string // the switches that GPU 0 sees, link by link
	for i, device := range devices {
		peers := make([]int, len(devices))
		switches := 0
		var path string
		for link := range nvml.NVLINK_MAX_LINKS {
			state, ret := device.GetNvLinkState(link)
			if ret == nvml.ERROR_NOT_SUPPORTED {
				continue
			}
			n.ok("read a link's state", ret)
			if state != nvml.FEATURE_ENABLED {
				n.t.Errorf("GPU %d: link %d is down", i, link)
				continue
			}
			kind, ret := device.GetNvLinkRemoteDeviceType(link)
			n.ok("read the kind of a link's other end", ret)
			remote, ret := device.GetNvLinkRemotePciInfo(link)
			n.ok("read a link's other end", ret)
			peer := peerOf(want, busID(remote))
			switch {
			case kind == nvml.NVLINK_DEVICE_TYPE_SWITCH && peer < 0:
				switches++
				path += busID(remote) + " "
			case kind == nvml.NVLINK_DEVICE_TYPE_GPU && peer >= 0 &&
				remote.PciDeviceId == want[peer].PCIID:
				peers[peer]++
			default:
				n.t.Errorf("GPU %d: link %d leads to %s (%#x) of kind %d", i, link, busID(remote),
					remote.PciDeviceId, kind)
			}
		}
		wanted := make([]int, len(devices))
		for j := range wanted {
			wanted[j] = p.linksBetween(i, j)
		}
		if fmt.Sprint(peers) != fmt.Sprint(wanted) || switches != p.Links.NVSwitch {
			n.t.Errorf("GPU %d has %v links to GPUs and %d to switches, want %v and %d", i, peers,
				switches, wanted, p.Links.NVSwitch)
		}
		if i == 0 {
			fabric = path
		} else if path != fabric {
			n.t.Errorf("GPU %d's links lead to the switches %s, those of GPU 0 to %s", i, path, fabric)
		}
	}
}

// peerOf is the index of the GPU at that bus id, -1 for anything else.
func peerOf(gpus []profileGPU, busID string) int {
	for i := range gpus {
		if gpus[i].busID == busID {
			return i
		}
	}
	return -1
}

// checkTopology compares where the PCIe paths of each two GPUs meet, and the fabric they are in.
func (n *node) checkTopology(devices []nvml.Device, p *profile) {
	n.t.Helper()
	want := p.gpus()
	for i, device := range devices {
		for j, other := range devices {
			level, ret := device.GetTopologyCommonAncestor(other)
			n.ok("read where two GPUs meet", ret)
			wanted := nvml.TOPOLOGY_NODE
			switch {
			case i == j:
				wanted = nvml.TOPOLOGY_INTERNAL
			case len(p.SwitchGroups) > 0 && p.SwitchGroups[i] == p.SwitchGroups[j]:
				wanted = nvml.TOPOLOGY_SINGLE
			case want[i].numa != want[j].numa:
				wanted = nvml.TOPOLOGY_SYSTEM
			case len(p.SwitchGroups) > 0:
				wanted = nvml.TOPOLOGY_HOSTBRIDGE
			}
			if level != nvml.GpuTopologyLevel(wanted) {
				n.t.Errorf("GPUs %d and %d meet at level %d, want %d", i, j, level, wanted)
			}
		}
		fabric, ret := device.GetGpuFabricInfo()
		n.ok("read the fabric", ret)
		switch {
		case p.Fabric == nil && fabric.State != nvml.GPU_FABRIC_STATE_NOT_SUPPORTED,
			p.Fabric != nil && (fabric.State != nvml.GPU_FABRIC_STATE_COMPLETED ||
				fabric.CliqueId != p.Fabric.Clique):
			n.t.Errorf("GPU %d says of its fabric %+v, the profile %+v", i, fabric, p.Fabric)
		}
	}
}
