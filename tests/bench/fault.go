package main

import (
	"context"
	"strconv"
	"time"
)

const faults = 100

// faultPart measures from the fault to the list that says so. A process sees each GPU fail once;
// then a fresh one takes over, since not every subject ever lets a GPU recover.
func (b *bench) faultPart() part {
	reaction := newRow("fault to Unhealthy at the kubelet, median of 100", "ms", "<= 20")
	own := newRow("  of that, the start of ndp-sim (upper bound)", "ms", "")
	return part{"fault", 60 * time.Second, []*row{reaction, own},
		b.onMachine("fault", "", func(ctx context.Context, m machine, s subject) error {
			var spans, sim []time.Duration
			for len(spans) < faults {
				more, moreSim, err := faultOfEach(ctx, m, s, faults-len(spans))
				if err != nil {
					return err
				}
				spans, sim = append(spans, more...), append(sim, moreSim...)
			}
			reaction.set(s, milliseconds(median(spans)))
			own.set(s, milliseconds(median(sim)))
			return nil
		})}
}

// faultOfEach has at most `count` GPUs of a healthy machine fail, one after the other.
func faultOfEach(ctx context.Context, m machine, s subject, count int) (spans,
	sim []time.Duration, err error) {
	if _, err := m.run(ctx, "clear"); err != nil {
		return nil, nil, err
	}
	v, err := serve(ctx, m, s, gpu, gpus)
	if err != nil {
		return nil, nil, err
	}
	defer v.end()
	// Events before a program has registered for them are lost.
	if err := pause(ctx, settlingTime/2); err != nil {
		return nil, nil, err
	}
	for number := range min(gpus, count) {
		begin := time.Now()
		if _, err := m.run(ctx, "fault", "--gpu", strconv.Itoa(number), "--xid", "79"); err != nil {
			return nil, nil, err
		}
		sim = append(sim, time.Since(begin))
		l, err := v.kubelet.waitHealthy(ctx, gpu, gpus-number-1)
		if err != nil {
			return nil, nil, v.explain(err)
		}
		spans = append(spans, l.at.Sub(begin))
	}
	return spans, sim, nil
}
