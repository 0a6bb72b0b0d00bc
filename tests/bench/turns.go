package main

import (
	"context"
	"time"
)

// turnsPart has two plugins answer beside one kubelet, a run of calls each in turn: the machine's
// changes of pace, which are larger than what is compared, meet both alike.
func (b *bench) turnsPart() part {
	allocate := newRow("Allocate of one GPU, five runs in turn with the other's", "us", "<= 0.8 x other")
	return part{"turns", 60 * time.Second, []*row{allocate}, func(ctx context.Context, s subject) error {
		if len(b.subjects) < 2 || s.name != b.subjects[0].name {
			return nil
		}
		other := b.subjects[1]
		ours, err := b.newMachine(ctx, "turns-"+s.name, "")
		if err != nil {
			return err
		}
		theirs, err := b.newMachine(ctx, "turns-"+other.name, "")
		if err != nil {
			return err
		}
		v, err := serve(ctx, ours, s, gpu, gpus)
		if err != nil {
			return err
		}
		defer v.end()
		plugin := v.kubelet.plugin(gpu)
		second, err := other.start(theirs)
		if err != nil {
			return err
		}
		defer func() { _, _ = second.stop() }()
		list, err := v.kubelet.waitHealthy(ctx, gpu, gpus)
		if err != nil {
			return err
		}
		one := func() error { return allocateOf(ctx, plugin, v.first.ids[:1]) }
		another := func() error { return v.allocate(ctx, gpu, list.ids[:1]) }
		if _, _, err := inTurn(one, another, warmUpCalls); err != nil {
			return v.explain(err)
		}
		if err := pause(ctx, 2*settlingTime); err != nil {
			return err
		}
		var spans [2][]time.Duration
		for range runs {
			for i, call := range []func() error{one, another} {
				span, err := medianCall(call, callsPerRun)
				if err != nil {
					return v.explain(err)
				}
				spans[i] = append(spans[i], span)
			}
		}
		allocate.set(s, microseconds(median(spans[0])))
		allocate.set(other, microseconds(median(spans[1])))
		return nil
	}}
}

// inTurn calls one and the other, so many times each, and returns the median of each.
func inTurn(one, other func() error, count int) (time.Duration, time.Duration, error) {
	var spans [2][]time.Duration
	for range count {
		for i, call := range []func() error{one, other} {
			begin := time.Now()
			if err := call(); err != nil {
				return 0, 0, err
			}
			spans[i] = append(spans[i], time.Since(begin))
		}
	}
	return median(spans[0]), median(spans[1]), nil
}
