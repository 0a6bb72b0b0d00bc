package main

import (
	"context"
	"time"
)

const (
	slowStarts = 11
	// A pod's admission does not wait longer than this for a plugin that looks at its links first.
	preferLimit = 10 * time.Second
)

// What tells how GPUs are linked. On some hosts each of these takes most of a second.
var linkFunctions = []string{
	"nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetTopologyNearestGpus",
	"nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkRemotePciInfo",
	"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemoteDeviceType",
}

// slowLinksPart measures start and preferred allocation where reading the links takes minutes. The
// requests come while it is under way.
func (b *bench) slowLinksPart() part {
	start := newRow("600 ms in each link query: exec to Register received", "ms",
		"<= 12, as without")
	preferred := newRow("  GetPreferredAllocation of 4 in 8", "us", "as without")
	allocateNvml := newRow("  NVML calls during 1,000 Allocates", "", "0")
	preferredNvml := newRow("  NVML calls during 50 GetPreferredAllocations", "", "0")
	return part{"links", 60 * time.Second, []*row{start, preferred, allocateNvml, preferredNvml},
		b.onMachine("links", "", func(ctx context.Context, m machine, s subject) error {
			for _, function := range linkFunctions {
				if _, err := m.run(ctx, "function", "--function", function, "--latency",
					"600ms"); err != nil {
					return err
				}
			}
			begun, _, err := startsAndStops(ctx, m, s, slowStarts)
			if err != nil {
				return err
			}
			start.set(s, milliseconds(median(begun)))
			v, err := serve(ctx, m, s, gpu, gpus)
			if err != nil {
				return err
			}
			defer v.end()
			ids := v.first.ids
			count, err := m.nvmlCallsDuring(ctx, repeat(countedCalls, func() error {
				return v.allocate(ctx, gpu, ids[:1])
			}))
			if err != nil {
				return v.explain(err)
			}
			allocateNvml.set(s, count)
			prefer := func() error {
				limited, cancel := context.WithTimeout(ctx, preferLimit)
				defer cancel()
				return v.prefer(limited, gpu, ids, 4)
			}
			span, err := medianCall(prefer, preferredCalls)
			if err != nil {
				return err
			}
			preferred.set(s, microseconds(span))
			if count, err = m.nvmlCallsDuring(ctx, repeat(countedPrefers, prefer)); err != nil {
				return v.explain(err)
			}
			preferredNvml.set(s, count)
			return nil
		})}
}
