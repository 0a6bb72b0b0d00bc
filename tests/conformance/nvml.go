package conformance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpu is what NVIDIA's own Go bindings read from the simulated driver.
type gpu struct {
	index, minor int
	uuid, name   string
	busID        string
	memoryMiB    uint64
	migMode      bool
	migDevices   []string // UUIDs
}

// library finds the simulated libnvidia-ml.so.1 in the driver root. Some profiles put the driver
// into a folder of the machine, as containers and GKE's installer do.
func (n *node) library() string {
	n.t.Helper()
	for _, root := range []string{"", "run/nvidia/driver", "home/kubernetes/bin/nvidia"} {
		for _, folder := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
			"usr/lib64", "lib64"} {
			path := filepath.Join(n.driverRoot(), root, folder, "libnvidia-ml.so.1")
			if resolved, err := filepath.EvalSymlinks(path); err == nil {
				return resolved
			}
		}
	}
	n.t.Fatalf("no libnvidia-ml.so.1 in the driver root %s", n.driverRoot())
	return ""
}

// session opens NVML, lets use run, and closes it again: an open session keeps GPUs from being
// reset or re-partitioned.
func (n *node) session(use func(library nvml.Interface)) {
	n.t.Helper()
	library := nvml.New(nvml.WithLibraryPath(n.library()))
	n.ok("initialise NVML", library.Init())
	defer func() { n.ok("shut NVML down", library.Shutdown()) }()
	use(library)
}

func (n *node) ok(what string, ret nvml.Return) {
	n.t.Helper()
	if ret != nvml.SUCCESS {
		n.t.Fatalf("%s: NVML returned %d", what, int(ret))
	}
}

// gpus reads the machine in a short session.
func (n *node) gpus() []gpu {
	n.t.Helper()
	var found []gpu
	n.session(func(library nvml.Interface) {
		count, ret := library.DeviceGetCount()
		n.ok("count the GPUs", ret)
		for i := range count {
			device, ret := library.DeviceGetHandleByIndex(i)
			n.ok("open a GPU", ret)
			found = append(found, n.readGPU(device))
		}
	})
	return found
}

func (n *node) readGPU(device nvml.Device) gpu {
	n.t.Helper()
	var g gpu
	var ret nvml.Return
	g.index, ret = device.GetIndex()
	n.ok("read a GPU's index", ret)
	g.minor, ret = device.GetMinorNumber()
	n.ok("read a GPU's minor number", ret)
	g.uuid, ret = device.GetUUID()
	n.ok("read a GPU's UUID", ret)
	g.name, ret = device.GetName()
	n.ok("read a GPU's name", ret)
	pci, ret := device.GetPciInfo()
	n.ok("read a GPU's PCI id", ret)
	g.busID = busID(pci)
	memory, ret := device.GetMemoryInfo()
	n.ok("read a GPU's memory", ret)
	g.memoryMiB = memory.Total >> 20
	mode, _, ret := device.GetMigMode()
	if ret != nvml.ERROR_NOT_SUPPORTED {
		n.ok("read a GPU's MIG mode", ret)
	}
	if g.migMode = ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE; g.migMode {
		g.migDevices = n.readMigDevices(device)
	}
	return g
}

func busID(pci nvml.PciInfo) string {
	var text strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		text.WriteByte(byte(c))
	}
	return text.String()
}

func (n *node) readMigDevices(device nvml.Device) []string {
	n.t.Helper()
	slots, ret := device.GetMaxMigDeviceCount()
	n.ok("count the MIG slots", ret)
	var ids []string
	for slot := range slots {
		mig, ret := device.GetMigDeviceHandleByIndex(slot)
		if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT {
			continue // an empty slot
		}
		n.ok("open a MIG device", ret)
		id, ret := mig.GetUUID()
		n.ok("read a MIG device's UUID", ret)
		ids = append(ids, id)
	}
	return ids
}

// numaNode reads what the simulated kernel says of a GPU's PCI device.
func (n *node) numaNode(g gpu) int64 {
	n.t.Helper()
	// sysfs writes the domain with four digits, NVML with eight.
	device := strings.ToLower(strings.TrimPrefix(g.busID, "0000"))
	text, err := os.ReadFile(filepath.Join(n.driverRoot(), "sys/bus/pci/devices", device, "numa_node"))
	must(n.t, err)
	node, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	must(n.t, err)
	return node
}
