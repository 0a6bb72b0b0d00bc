package main

import (
	"context"
	"path/filepath"
	"time"
)

// idleSpan holds one poll and one rescan of the default 30 s each.
const idleSpan = 30 * time.Second

// The slices of one H100 in these machines.
const (
	sevenSlices = "1g.10gb*7"
	slices7     = 7
)

func (b *bench) idlePart() part {
	return b.restPart("idle", "idle, 8 GPUs", "", gpu, gpus)
}

func (b *bench) migIdlePart() part {
	return b.restPart("mig-idle", "idle, 8 GPUs x 7 MIG", sevenSlices, smallSlice, gpus*slices7,
		"--mig-strategy=mixed")
}

// restPart measures what a subject does while nothing happens, beside a gRPC server that does
// nothing at all.
func (b *bench) restPart(name, what, layout, resource string, devices int, args ...string) part {
	switches := newRow(what+": voluntary context switches a second", "1/s", "<= bare + 0.5")
	bare := newRow("  bare: a gRPC server that does nothing, at the same time", "1/s", "")
	share := newRow("  share of one processor", "%", "<= 0.1")
	return part{name, idleSpan + patience, []*row{switches, bare, share},
		b.onMachine(name, layout, func(ctx context.Context, m machine, s subject) error {
			v, err := serve(ctx, m, s, resource, devices, args...)
			if err != nil {
				return err
			}
			defer v.end()
			pids := []int{v.pid()}
			if b.bare != "" {
				server, err := subject{"bare", b.bare, func(m machine) []string {
					return []string{filepath.Join(m.dir, "bare.sock")}
				}}.start(m)
				if err != nil {
					return err
				}
				defer func() { _, _ = server.stop() }()
				pids = append(pids, server.cmd.Process.Pid)
			}
			if err := pause(ctx, 2*settlingTime); err != nil {
				return err
			}
			rates, shares, err := idle(ctx, pids, idleSpan)
			if err != nil {
				return v.explain(err)
			}
			switches.set(s, rates[0])
			share.set(s, shares[0])
			if len(rates) > 1 {
				bare.set(s, rates[1])
			}
			return nil
		})}
}
