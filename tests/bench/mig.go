package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

const (
	smallSlice = "nvidia.com/mig-1g.10gb"
	halfSlice  = "nvidia.com/mig-3g.40gb"
	otherSlice = "nvidia.com/mig-2g.20gb"

	migReplicas = 4
)

func (b *bench) migMemoryPart() part {
	resident := newRow("resident, 8 GPUs x 7 MIG x 4 replicas, without libnvidia-ml", "MiB", "<= 12")
	return part{"mig-memory", 30 * time.Second, []*row{resident},
		b.onMachine("memory", sevenSlices, func(ctx context.Context, m machine, s subject) error {
			config, err := m.writeConfig("config.yaml", fmt.Sprintf(sharing, smallSlice, migReplicas))
			if err != nil {
				return err
			}
			v, err := serve(ctx, m, s, smallSlice, gpus*slices7*migReplicas, "--config-file", config,
				"--mig-strategy=mixed")
			if err != nil {
				return err
			}
			defer v.end()
			ids := v.first.ids
			if err := pause(ctx, 2*settlingTime); err != nil {
				return err
			}
			if _, err := medianCall(func() error {
				return v.allocate(ctx, smallSlice, ids[:1])
			}, warmUpCalls); err != nil {
				return v.explain(err)
			}
			bytes, err := residentBytes(v.pid(), m.dir)
			if err != nil {
				return v.explain(err)
			}
			resident.set(s, float64(bytes)/(1<<20))
			return nil
		})}
}

// repartitionPart slices one GPU of eight anew while the plugin runs, so that a device of one
// resource becomes three of another, and counts the lists that the kubelet gets.
func (b *bench) repartitionPart() part {
	changed := newRow("one GPU re-partitioned: lists for each changed resource", "",
		"1")
	gone := newRow("  more lists for each, when the old ids go", "", "1")
	untouched := newRow("  lists for the resource that did not change", "", "0")
	span := newRow("  re-partition to the last changed list", "ms", "")
	return part{"repartition", 60 * time.Second, []*row{changed, gone, untouched, span},
		b.onMachine("repartition", "3g.40gb,1g.10gb*4", func(ctx context.Context, m machine, s subject) error {
			if err := m.slice(ctx, gpus-1, "2g.20gb*3"); err != nil {
				return err
			}
			v, err := serve(ctx, m, s, smallSlice, 4*(gpus-1), "--mig-strategy=mixed")
			if err != nil {
				return err
			}
			defer v.end()
			if err := pause(ctx, 2*settlingTime); err != nil {
				return err
			}
			v.kubelet.drainLists()
			begin := time.Now()
			if err := m.slice(ctx, 0, sevenSlices); err != nil {
				return err
			}
			if err := v.program.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				return err
			}
			seen, err := v.kubelet.follow(ctx,
				map[string]int{smallSlice: 4*(gpus-2) + slices7, halfSlice: gpus - 2})
			if err != nil {
				return v.explain(err)
			}
			changed.set(s, float64(max(seen[smallSlice].first, seen[halfSlice].first)))
			gone.set(s, float64(max(seen[smallSlice].more, seen[halfSlice].more)))
			lists := 0
			if other := seen[otherSlice]; other != nil {
				lists = other.first + other.more
			}
			untouched.set(s, float64(lists))
			span.set(s, milliseconds(max(seen[smallSlice].changed.Sub(begin),
				seen[halfSlice].changed.Sub(begin))))
			return nil
		})}
}

// change is how a resource came to its new devices.
type change struct {
	first   int       // lists up to the one with all new devices healthy
	more    int       // lists from there to the end
	changed time.Time // when the former was complete
	done    bool      // the old ids have gone
}

func (k *kubelet) drainLists() {
	for {
		select {
		case <-k.lists:
		default:
			return
		}
	}
}

// follow counts lists until every resource has so many devices, all healthy, and no list has come
// for a while.
func (k *kubelet) follow(ctx context.Context, healthy map[string]int) (map[string]*change, error) {
	seen := map[string]*change{}
	quiet := func() bool {
		for resource := range healthy {
			if seen[resource] == nil || !seen[resource].done {
				return false
			}
		}
		return true
	}
	for {
		select {
		case l := <-k.lists:
			c := seen[l.resource]
			if c == nil {
				c = &change{}
				seen[l.resource] = c
			}
			if c.changed.IsZero() {
				c.first++
				if l.healthy == healthy[l.resource] {
					c.changed = l.at
				}
			} else {
				c.more++
			}
			c.done = l.healthy == healthy[l.resource] && len(l.ids) == l.healthy
		case <-time.After(2 * settlingTime):
			if quiet() {
				return seen, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("the new devices are not all listed, alone and healthy: %w",
				context.Cause(ctx))
		}
	}
}
