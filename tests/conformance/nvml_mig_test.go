package conformance

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// migLayout is a partition and what NVIDIA's MIG user guide says of the devices in it.
type migLayout struct {
	profiles string
	devices  []migDevice
}

type migDevice struct {
	slot              int
	name              string
	giStart, giSize   uint32 // memory slices
	ciStart, ciSize   uint32 // compute slices of the GPU instance
	giSlices, sms     uint32
	copies, jpeg, ofa uint32
	memoryMB          uint64
}

// One layout per MIG model: a large instance, an empty slot, one GPU instance shared by two compute
// instances, and a small one of a special kind.
var migLayouts = map[string]migLayout{
	"a100-40": {"3g.20gb,-,1c.2g.10gb*2,1g.5gb+me", []migDevice{
		{0, "3g.20gb", 0, 4, 0, 3, 3, 42, 3, 0, 0, 19968},
		{2, "1c.2g.10gb", 4, 2, 0, 1, 2, 14, 2, 0, 0, 9856},
		{3, "1c.2g.10gb", 4, 2, 1, 1, 2, 14, 2, 0, 0, 9856},
		{4, "1g.5gb+me", 6, 1, 0, 1, 1, 14, 1, 1, 1, 4864},
	}},
	"a100-80": {"3g.40gb,-,1c.2g.20gb*2,1g.10gb+me", []migDevice{
		{0, "3g.40gb", 0, 4, 0, 3, 3, 42, 3, 0, 0, 40192},
		{2, "1c.2g.20gb", 4, 2, 0, 1, 2, 14, 2, 0, 0, 19968},
		{3, "1c.2g.20gb", 4, 2, 1, 1, 2, 14, 2, 0, 0, 19968},
		{4, "1g.10gb+me", 6, 1, 0, 1, 1, 14, 1, 1, 1, 9728},
	}},
	"a30": {"1c.2g.12gb*2,-,1g.6gb+me", []migDevice{
		{0, "1c.2g.12gb", 0, 2, 0, 1, 2, 14, 2, 0, 0, 12032},
		{1, "1c.2g.12gb", 0, 2, 1, 1, 2, 14, 2, 0, 0, 12032},
		{3, "1g.6gb+me", 2, 1, 0, 1, 1, 14, 1, 1, 1, 5952},
	}},
	"h100": {"3g.40gb,-,1c.2g.20gb*2,1g.10gb+me", []migDevice{
		{0, "3g.40gb", 0, 4, 0, 3, 3, 60, 3, 3, 0, 40448},
		{2, "1c.2g.20gb", 4, 2, 0, 1, 2, 16, 2, 2, 0, 20096},
		{3, "1c.2g.20gb", 4, 2, 1, 1, 2, 16, 2, 2, 0, 20096},
		{4, "1g.10gb+me", 6, 1, 0, 1, 1, 16, 1, 1, 1, 9984},
	}},
	"h200": {"3g.71gb,-,1c.2g.35gb*2,1g.18gb+me", []migDevice{
		{0, "3g.71gb", 0, 4, 0, 3, 3, 60, 3, 3, 0, 70912},
		{2, "1c.2g.35gb", 4, 2, 0, 1, 2, 16, 2, 2, 0, 33280},
		{3, "1c.2g.35gb", 4, 2, 1, 1, 2, 16, 2, 2, 0, 33280},
		{4, "1g.18gb+me", 6, 1, 0, 1, 1, 16, 1, 1, 1, 16384},
	}},
	"b200": {"3g.90gb,-,1c.2g.45gb*2,1g.23gb+me", []migDevice{
		{0, "3g.90gb", 0, 4, 0, 3, 3, 70, 3, 3, 0, 90880},
		{2, "1c.2g.45gb", 4, 2, 0, 1, 2, 18, 2, 2, 0, 45184},
		{3, "1c.2g.45gb", 4, 2, 1, 1, 2, 18, 2, 2, 0, 45184},
		{4, "1g.23gb+me", 6, 1, 0, 1, 1, 18, 1, 1, 1, 22144},
	}},
	"rtx-pro-6000": {"1c.2g.48gb*2,-,1g.24gb+me.all", []migDevice{
		{0, "1c.2g.48gb", 0, 2, 0, 1, 2, 47, 2, 2, 0, 48512},
		{1, "1c.2g.48gb", 0, 2, 1, 1, 2, 47, 2, 2, 0, 48512},
		{3, "1g.24gb+me.all", 2, 1, 0, 1, 1, 46, 1, 4, 1, 24192},
	}},
}

// checkMIG partitions the last GPU that can be, and compares its MIG devices with the table and with
// what ndp-sim says; the GPUs beside it stay whole.
func (n *node) checkMIG(p *profile) {
	n.t.Helper()
	chosen := -1
	for i, gpu := range p.gpus() {
		if gpu.MIG != "" {
			chosen = i
		}
	}
	if chosen < 0 {
		return
	}
	layout, known := migLayouts[p.gpus()[chosen].MIG]
	if !known {
		n.t.Fatalf("no layout for the MIG model %q", p.gpus()[chosen].MIG)
	}
	n.partition(chosen, layout.profiles)
	n.session(func(library nvml.Interface) {
		for i := range p.gpus() {
			device, ret := library.DeviceGetHandleByIndex(i)
			n.ok("open a GPU", ret)
			current, pending, ret := device.GetMigMode()
			on := ret == nvml.SUCCESS && current == nvml.DEVICE_MIG_ENABLE
			if on != (i == chosen) || current != pending {
				n.t.Errorf("GPU %d has MIG mode %d, pending %d (%d), GPU %d is the partitioned one",
					i, current, pending, int(ret), chosen)
			}
			if on {
				n.checkPartition(device, i, layout)
			}
		}
	})
}

func (n *node) checkPartition(parent nvml.Device, index int, layout migLayout) {
	n.t.Helper()
	wanted := map[int]migDevice{}
	for _, device := range layout.devices {
		wanted[device.slot] = device
	}
	status := n.simStatus()[index].MIG
	if len(status) != len(wanted) {
		n.t.Errorf("ndp-sim lists %+v, want %d MIG devices", status, len(wanted))
	}
	uuids, instances := map[int]string{}, map[int]string{}
	for _, device := range status {
		uuids[device.Index] = device.UUID
		instances[device.Index] = fmt.Sprintf("%d/%d", device.GI, device.CI)
	}
	slots, ret := parent.GetMaxMigDeviceCount()
	n.ok("count the MIG slots", ret)
	for slot := range slots {
		mig, ret := parent.GetMigDeviceHandleByIndex(slot)
		want, used := wanted[slot]
		delete(wanted, slot)
		if !used {
			if ret != nvml.ERROR_NOT_FOUND {
				n.t.Errorf("the empty MIG slot %d answers %d", slot, int(ret))
			}
			continue
		}
		n.ok("open a MIG device", ret)
		uuid, ret := mig.GetUUID()
		n.ok("read a MIG device's UUID", ret)
		if uuid != uuids[slot] || !uuidForm.MatchString("GPU-"+strings.TrimPrefix(uuid, "MIG-")) {
			n.t.Errorf("MIG slot %d has the UUID %s, want %s", slot, uuid, uuids[slot])
		}
		name, ret := mig.GetName()
		n.ok("read a MIG device's name", ret)
		if !strings.HasSuffix(name, " MIG "+want.name) {
			n.t.Errorf("MIG slot %d is a %q, want a %s", slot, name, want.name)
		}
		got := n.readMigDevice(parent, index, mig, instances[slot])
		got.slot, got.name = slot, want.name
		if got != want {
			n.t.Errorf("MIG slot %d is %+v, want %+v", slot, got, want)
		}
	}
	if len(wanted) != 0 {
		n.t.Errorf("the GPU has only %d slots", slots)
	}
}

// readMigDevice reads attributes and place, and checks that the ids lead to the same instances.
func (n *node) readMigDevice(parent nvml.Device, index int, mig nvml.Device, ids string) migDevice {
	n.t.Helper()
	gi, ret := mig.GetGpuInstanceId()
	n.ok("read a GPU instance's id", ret)
	ci, ret := mig.GetComputeInstanceId()
	n.ok("read a compute instance's id", ret)
	if got := fmt.Sprintf("%d/%d", gi, ci); got != ids {
		n.t.Errorf("the MIG device is of GPU and compute instance %s, want %s", got, ids)
	}
	above, ret := mig.GetDeviceHandleFromMigDeviceHandle()
	n.ok("find a MIG device's GPU", ret)
	if got, ret := above.GetIndex(); ret != nvml.SUCCESS || got != index {
		n.t.Errorf("the MIG device is of GPU %d, want %d", got, index)
	}
	gpuInstance, ret := parent.GetGpuInstanceById(gi)
	n.ok("find a GPU instance", ret)
	place, ret := gpuInstance.GetInfo()
	n.ok("read a GPU instance", ret)
	computeInstance, ret := gpuInstance.GetComputeInstanceById(ci)
	n.ok("find a compute instance", ret)
	inside, ret := computeInstance.GetInfo()
	n.ok("read a compute instance", ret)
	if int(place.Id) != gi || int(inside.Id) != ci {
		n.t.Errorf("instances %d/%d call themselves %d/%d", gi, ci, place.Id, inside.Id)
	}
	has, ret := mig.GetAttributes()
	n.ok("read a MIG device's attributes", ret)
	if has.ComputeInstanceSliceCount != inside.Placement.Size {
		n.t.Errorf("a compute instance of %d slices has %d", inside.Placement.Size,
			has.ComputeInstanceSliceCount)
	}
	return migDevice{
		giStart: place.Placement.Start, giSize: place.Placement.Size,
		ciStart: inside.Placement.Start, ciSize: inside.Placement.Size,
		giSlices: has.GpuInstanceSliceCount, sms: has.MultiprocessorCount,
		copies: has.SharedCopyEngineCount, jpeg: has.SharedJpegCount, ofa: has.SharedOfaCount,
		memoryMB: has.MemorySizeMB,
	}
}
