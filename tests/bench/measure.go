package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	gpus = 8
	// Anything slower than this is a failure, not a measurement.
	patience = 30 * time.Second

	starts       = 21
	reopenings   = 21
	faults       = 100
	runs         = 5
	callsPerRun  = 2000
	idleSpan     = 20 * time.Second
	warmUpCalls  = 1000 // also what resident memory is measured after
	settlingTime = time.Second
)

// bench measures one set of subjects on one machine.
type bench struct {
	machine  machine
	subjects []subject
	bare     string // a gRPC server that does nothing; may be empty
	table    table
}

// forget removes what a program remembers of an earlier one's faults.
func forget() error {
	entries, err := os.ReadDir(pluginDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != "kubelet.sock" {
			if err := os.RemoveAll(filepath.Join(pluginDir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// served starts a subject beside a fresh kubelet and waits until all GPUs are listed.
func served(s subject) (*kubelet, *running, error) {
	k, err := startKubelet()
	if err != nil {
		return nil, nil, err
	}
	r, err := s.start()
	if err != nil {
		k.stop()
		return nil, nil, err
	}
	if _, err := k.waitHealthy(gpus, patience); err != nil {
		_, _ = r.stop()
		k.stop()
		return nil, nil, fmt.Errorf("%w%s", err, r.lastWords())
	}
	return k, r, nil
}

// lifeCycle measures start and stop, and the kubelet's restarts in between.
func (b *bench) lifeCycle() {
	start := b.table.row("exec to Register received", "ms")
	stop := b.table.row("SIGTERM to exit", "ms")
	for _, s := range b.subjects {
		begun, ended, err := startsAndStops(s)
		start.set(s.name, milliseconds(median(begun)), err)
		stop.set(s.name, milliseconds(median(ended)), err)
	}
	reopened := b.table.row("kubelet.sock re-created to Register received", "ms")
	listed := b.table.row("kubelet.sock re-created to full list", "ms")
	late := b.table.row("kubelet started after the plugin, to full list", "ms")
	for _, s := range b.subjects {
		register, list, err := kubeletRestarts(s)
		reopened.set(s.name, milliseconds(median(register)), err)
		listed.set(s.name, milliseconds(median(list)), err)
		span, err := kubeletStartsLate(s)
		late.set(s.name, milliseconds(span), err)
	}
}

func startsAndStops(s subject) (begun, ended []time.Duration, err error) {
	for range starts {
		if err := forget(); err != nil {
			return nil, nil, err
		}
		k, err := startKubelet()
		if err != nil {
			return nil, nil, err
		}
		r, err := s.start()
		if err != nil {
			k.stop()
			return nil, nil, err
		}
		at, err := k.waitRegistered(patience)
		if err == nil {
			_, err = k.waitHealthy(gpus, patience)
		}
		span, stopErr := r.stop()
		k.stop()
		if err != nil {
			return nil, nil, fmt.Errorf("%w%s", err, r.lastWords())
		}
		if stopErr != nil {
			return nil, nil, stopErr
		}
		begun, ended = append(begun, at.Sub(r.started)), append(ended, span)
	}
	return begun, ended, nil
}

func kubeletRestarts(s subject) (register, list []time.Duration, err error) {
	if err := forget(); err != nil {
		return nil, nil, err
	}
	k, r, err := served(s)
	if err != nil {
		return nil, nil, err
	}
	defer func() { k.stop(); _, _ = r.stop() }()
	for range reopenings {
		k.stop()
		time.Sleep(settlingTime / 4)
		if k, err = startKubelet(); err != nil {
			return nil, nil, err
		}
		at, err := k.waitRegistered(patience)
		if err != nil {
			return nil, nil, fmt.Errorf("%w%s", err, r.lastWords())
		}
		full, err := k.waitHealthy(gpus, patience)
		if err != nil {
			return nil, nil, fmt.Errorf("%w%s", err, r.lastWords())
		}
		register = append(register, at.Sub(k.started))
		list = append(list, full.at.Sub(k.started))
	}
	return register, list, nil
}

// kubeletStartsLate has the plugin up before there is any kubelet, as after a reboot.
func kubeletStartsLate(s subject) (time.Duration, error) {
	if err := forget(); err != nil {
		return 0, err
	}
	r, err := s.start()
	if err != nil {
		return 0, err
	}
	defer func() { _, _ = r.stop() }()
	time.Sleep(settlingTime)
	k, err := startKubelet()
	if err != nil {
		return 0, err
	}
	defer k.stop()
	full, err := k.waitHealthy(gpus, 2*patience)
	if err != nil {
		return 0, fmt.Errorf("%w%s", err, r.lastWords())
	}
	return full.at.Sub(k.started), nil
}

// faultReactions measures from the fault to the list that says so. A process sees each GPU fail
// once; then a fresh one takes over, since not every subject ever lets a GPU recover.
func (b *bench) faultReactions() {
	reaction := b.table.row("fault to Unhealthy list", "ms")
	own := b.table.row("  of that, the start of ndp-sim (upper bound)", "ms")
	for _, s := range b.subjects {
		spans, sim, err := faultsOf(b.machine, s)
		reaction.set(s.name, milliseconds(median(spans)), err)
		own.set(s.name, milliseconds(median(sim)), err)
	}
}

func faultsOf(m machine, s subject) (spans, sim []time.Duration, err error) {
	for len(spans) < faults {
		if err := m.run("clear"); err != nil {
			return nil, nil, err
		}
		if err := forget(); err != nil {
			return nil, nil, err
		}
		k, r, err := served(s)
		if err != nil {
			return nil, nil, err
		}
		// Events before a program has registered for them are lost.
		time.Sleep(settlingTime / 2)
		for gpu := 0; gpu < gpus && len(spans) < faults && err == nil; gpu++ {
			begin := time.Now()
			if err = m.run("fault", "--gpu", fmt.Sprint(gpu), "--xid", "79"); err != nil {
				break
			}
			sim = append(sim, time.Since(begin))
			var l list
			if l, err = k.waitHealthy(gpus-gpu-1, patience); err == nil {
				spans = append(spans, l.at.Sub(begin))
			}
		}
		_, stopErr := r.stop()
		k.stop()
		if err != nil {
			return nil, nil, fmt.Errorf("%w%s", err, r.lastWords())
		}
		if stopErr != nil {
			return nil, nil, stopErr
		}
	}
	return spans, sim, m.run("clear")
}

// calls measures requests over the socket, the subjects in turn, and then what they have resident.
func (b *bench) calls() {
	options := b.table.row("GetDevicePluginOptions (does nothing)", "us")
	allocate := b.table.row("Allocate of one GPU", "us")
	allocateAll := b.table.row("Allocate of eight GPUs", "us")
	preferred := b.table.row("GetPreferredAllocation of 4 in 8", "us")
	relative := b.table.row("Allocate / GetDevicePluginOptions", "")
	resident := b.table.row("resident after these calls, without libnvidia-ml", "MiB")
	for _, s := range b.subjects {
		if err := b.callsOf(s, options, allocate, allocateAll, preferred, relative,
			resident); err != nil {
			allocate.set(s.name, 0, err)
		}
	}
}

func (b *bench) callsOf(s subject, options, allocate, allocateAll, preferred, relative,
	resident *row) error {
	if err := forget(); err != nil {
		return err
	}
	k, r, err := served(s)
	if err != nil {
		return err
	}
	defer func() { k.stop(); _, _ = r.stop() }()
	ids, err := b.allIDs(k)
	if err != nil {
		return err
	}
	ctx, api := context.Background(), k.plugin
	kinds := []struct {
		row  *row
		call func() error
	}{
		{options, func() error {
			_, err := api.GetDevicePluginOptions(ctx, &pluginapi.Empty{})
			return err
		}},
		{allocate, func() error { return allocateOf(ctx, api, ids[:1]) }},
		{allocateAll, func() error { return allocateOf(ctx, api, ids) }},
		{preferred, func() error {
			_, err := api.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
				ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
					AvailableDeviceIDs: ids, AllocationSize: 4,
				}},
			})
			return err
		}},
	}
	for _, kind := range kinds[:3] {
		if _, err := medianCall(kind.call, warmUpCalls); err != nil {
			return err
		}
	}
	bytes, err := residentBytes(r.cmd.Process.Pid, b.machine.dir)
	resident.set(s.name, float64(bytes)/(1<<20), err)
	medians := make([][]time.Duration, len(kinds))
	for range runs {
		for i, kind := range kinds {
			calls := callsPerRun
			if kind.row == preferred {
				calls /= 10 // milliseconds each for some
			}
			span, err := medianCall(kind.call, calls)
			if err != nil {
				return err
			}
			medians[i] = append(medians[i], span)
		}
	}
	for i, kind := range kinds {
		kind.row.set(s.name, microseconds(median(medians[i])), nil)
	}
	relative.set(s.name, float64(median(medians[1]))/float64(median(medians[0])), nil)
	return nil
}

// allIDs asks for a list of its own: a plugin serves several streams.
func (b *bench) allIDs(k *kubelet) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := k.plugin.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, device := range answer.Devices {
		ids = append(ids, device.ID)
	}
	return ids, nil
}

func allocateOf(ctx context.Context, api pluginapi.DevicePluginClient, ids []string) error {
	_, err := api.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	return err
}

func medianCall(call func() error, count int) (time.Duration, error) {
	spans := make([]time.Duration, count)
	for i := range spans {
		begin := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		spans[i] = time.Since(begin)
	}
	return median(spans), nil
}

// atRest measures what the subjects do while nothing happens, beside a gRPC server that does
// nothing at all.
func (b *bench) atRest() {
	switches := b.table.row("idle: voluntary context switches a second", "1/s")
	cpu := b.table.row("idle: share of one processor", "%")
	bare := b.table.row("idle: a bare gRPC server's switches in the same run", "1/s")
	for _, s := range b.subjects {
		rates, shares, err := b.restOf(s)
		if err != nil {
			switches.set(s.name, 0, err)
			continue
		}
		switches.set(s.name, rates[0], nil)
		cpu.set(s.name, shares[0], nil)
		if len(rates) > 1 {
			bare.set(s.name, rates[1], nil)
		}
	}
}

func (b *bench) restOf(s subject) (rates, shares []float64, err error) {
	if err := forget(); err != nil {
		return nil, nil, err
	}
	k, r, err := served(s)
	if err != nil {
		return nil, nil, err
	}
	defer func() { k.stop(); _, _ = r.stop() }()
	pids := []int{r.cmd.Process.Pid}
	if b.bare != "" {
		server, err := (subject{name: "bare", path: b.bare,
			args: []string{filepath.Join(b.machine.dir, "bare.sock")}}).start()
		if err != nil {
			return nil, nil, err
		}
		defer func() { _, _ = server.stop() }()
		pids = append(pids, server.cmd.Process.Pid)
	}
	time.Sleep(3 * settlingTime)
	return idle(pids, idleSpan)
}

func (b *bench) sizes() {
	size := b.table.row("program, stripped", "MiB")
	for _, s := range b.subjects {
		bytes, err := s.strippedSize()
		size.set(s.name, float64(bytes)/(1<<20), err)
	}
}
