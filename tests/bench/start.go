package main

import (
	"context"
	"time"
)

const (
	starts     = 21
	reopenings = 21
)

// startPart measures start and stop, and the kubelet's restarts in between.
func (b *bench) startPart() part {
	start := newRow("exec to Register received", "ms", "<= 12")
	stop := newRow("SIGTERM to exit", "ms", "<= 2000")
	reopened := newRow("kubelet.sock re-created to Register received", "ms", "<= 5")
	listed := newRow("kubelet.sock re-created to full list", "ms", "")
	late := newRow("kubelet started after the plugin, to full list", "ms", "")
	return part{"start", 60 * time.Second, []*row{start, stop, reopened, listed, late},
		b.onMachine("start", "", func(ctx context.Context, m machine, s subject) error {
			begun, ended, err := startsAndStops(ctx, m, s, starts)
			if err != nil {
				return err
			}
			start.set(s, milliseconds(median(begun)))
			stop.set(s, milliseconds(median(ended)))
			register, list, err := kubeletRestarts(ctx, m, s)
			if err != nil {
				return err
			}
			reopened.set(s, milliseconds(median(register)))
			listed.set(s, milliseconds(median(list)))
			span, err := kubeletStartsLate(ctx, m, s)
			if err != nil {
				return err
			}
			late.set(s, milliseconds(span))
			return nil
		})}
}

func startsAndStops(ctx context.Context, m machine, s subject, count int) (begun,
	ended []time.Duration, err error) {
	for range count {
		v, err := begin(m, s)
		if err != nil {
			return nil, nil, err
		}
		at, err := v.kubelet.waitRegistered(ctx)
		if err == nil {
			_, err = v.kubelet.waitHealthy(ctx, gpu, gpus)
		}
		span, stopErr := v.program.stop()
		v.kubelet.stop()
		if err != nil {
			return nil, nil, v.explain(err)
		}
		if stopErr != nil {
			return nil, nil, stopErr
		}
		begun, ended = append(begun, at.Sub(v.program.started)), append(ended, span)
	}
	return begun, ended, nil
}

func kubeletRestarts(ctx context.Context, m machine, s subject) (register, list []time.Duration,
	err error) {
	v, err := serve(ctx, m, s, gpu, gpus)
	if err != nil {
		return nil, nil, err
	}
	defer func() { v.end() }()
	for range reopenings {
		v.kubelet.stop()
		if err := pause(ctx, settlingTime/4); err != nil {
			return nil, nil, err
		}
		if v.kubelet, err = startKubelet(); err != nil {
			return nil, nil, err
		}
		at, err := v.kubelet.waitRegistered(ctx)
		if err != nil {
			return nil, nil, v.explain(err)
		}
		full, err := v.kubelet.waitHealthy(ctx, gpu, gpus)
		if err != nil {
			return nil, nil, v.explain(err)
		}
		register = append(register, at.Sub(v.kubelet.started))
		list = append(list, full.at.Sub(v.kubelet.started))
	}
	return register, list, nil
}

// kubeletStartsLate has the plugin up before there is any kubelet, as after a reboot.
func kubeletStartsLate(ctx context.Context, m machine, s subject) (time.Duration, error) {
	if err := forget(); err != nil {
		return 0, err
	}
	r, err := s.start(m)
	if err != nil {
		return 0, err
	}
	defer func() { _, _ = r.stop() }()
	if err := pause(ctx, settlingTime); err != nil {
		return 0, err
	}
	k, err := startKubelet()
	if err != nil {
		return 0, err
	}
	defer k.stop()
	full, err := k.waitHealthy(ctx, gpu, gpus)
	if err != nil {
		return 0, (&served{program: r}).explain(err)
	}
	return full.at.Sub(k.started), nil
}
