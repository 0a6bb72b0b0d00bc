package main

import (
	"context"
	"time"
)

const (
	runs           = 5
	callsPerRun    = 2000
	preferredCalls = 200
	warmUpCalls    = 1000 // also what resident memory is measured after
	countedCalls   = 1000
	countedPrefers = 50
)

// callsPart measures requests over the socket, what they have the driver do, and what is resident
// after them.
func (b *bench) callsPart() part {
	options := newRow("GetDevicePluginOptions (does nothing)", "us", "")
	allocate := newRow("Allocate of one GPU", "us", "")
	relative := newRow("  divided by GetDevicePluginOptions, median of 5 runs", "", "<= 1.15")
	all := newRow("Allocate of eight GPUs", "us", "")
	preferred := newRow("GetPreferredAllocation of 4 in 8", "us", "")
	allocateNvml := newRow("NVML calls during 1,000 Allocates", "", "0")
	preferredNvml := newRow("NVML calls during 50 GetPreferredAllocations", "", "0")
	resident := newRow("resident after 1,000 Allocates, without libnvidia-ml", "MiB", "<= 10")
	rows := []*row{options, allocate, relative, all, preferred, allocateNvml, preferredNvml, resident}
	return part{"calls", 60 * time.Second, rows, b.onMachine("calls", "", func(ctx context.Context, m machine, s subject) error {
		v, err := serve(ctx, m, s, gpu, gpus)
		if err != nil {
			return err
		}
		defer v.end()
		ids := v.first.ids
		kinds := []struct {
			row   *row
			calls int
			call  func() error
		}{
			{options, callsPerRun, func() error { return v.options(ctx, gpu) }},
			{allocate, callsPerRun, func() error { return v.allocate(ctx, gpu, ids[:1]) }},
			{all, callsPerRun, func() error { return v.allocate(ctx, gpu, ids) }},
			{preferred, preferredCalls, func() error { return v.prefer(ctx, gpu, ids, 4) }},
		}
		if _, err := medianCall(kinds[0].call, warmUpCalls); err != nil {
			return v.explain(err)
		}
		// A node serves for months: its memory and its calls are those after the start is over.
		if err := pause(ctx, 2*settlingTime); err != nil {
			return err
		}
		if _, err := medianCall(kinds[1].call, warmUpCalls); err != nil {
			return v.explain(err)
		}
		bytes, err := residentBytes(v.pid(), m.dir)
		if err != nil {
			return v.explain(err)
		}
		resident.set(s, float64(bytes)/(1<<20))

		spans := make([][]time.Duration, len(kinds))
		var ratios []float64
		for range runs {
			nothing, one, err := inTurn(kinds[0].call, kinds[1].call, callsPerRun)
			if err != nil {
				return v.explain(err)
			}
			ratios = append(ratios, float64(one)/float64(nothing))
			spans[0], spans[1] = append(spans[0], nothing), append(spans[1], one)
			for i := 2; i < len(kinds); i++ {
				span, err := medianCall(kinds[i].call, kinds[i].calls)
				if err != nil {
					return v.explain(err)
				}
				spans[i] = append(spans[i], span)
			}
		}
		for i, kind := range kinds {
			kind.row.set(s, microseconds(median(spans[i])))
		}
		relative.set(s, median(ratios))

		count, err := m.nvmlCallsDuring(ctx, repeat(countedCalls, kinds[1].call))
		if err != nil {
			return v.explain(err)
		}
		allocateNvml.set(s, count)
		if count, err = m.nvmlCallsDuring(ctx, repeat(countedPrefers, kinds[3].call)); err != nil {
			return v.explain(err)
		}
		preferredNvml.set(s, count)
		return nil
	})}
}

func repeat(count int, call func() error) func() error {
	return func() error {
		for range count {
			if err := call(); err != nil {
				return err
			}
		}
		return nil
	}
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
