package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	manyReplicas  = 7000 // about the most of 8 GPUs that a message to the kubelet holds
	replicasAsked = 8
	replicaCalls  = 15
)

const sharing = `version: v1
sharing:
  timeSlicing:
    resources:
    - {name: %s, replicas: %d}
`

// replicasPart has the kubelet ask for some of as many replicas as a list can have. The ids alone
// are a message of 2.6 MB, which the policy function is only a part of.
func (b *bench) replicasPart() part {
	whole := newRow("preferred 8 of 8 x 7,000 replicas, over the socket", "ms", "")
	message := newRow("  of that, the message (all but the policy function above)", "ms", "")
	return part{"replicas", 45 * time.Second, []*row{whole, message},
		b.onMachine("replicas", "", func(ctx context.Context, m machine, s subject) error {
			config, err := m.writeConfig("config.yaml", fmt.Sprintf(sharing, gpu, manyReplicas))
			if err != nil {
				return err
			}
			v, err := serve(ctx, m, s, gpu, gpus*manyReplicas, "--config-file", config)
			if err != nil {
				return err
			}
			defer v.end()
			// A kubelet has them in a set without order.
			ids := v.first.ids
			rand.New(rand.NewPCG(1, 1)).Shuffle(len(ids), func(i, j int) {
				ids[i], ids[j] = ids[j], ids[i]
			})
			span, err := medianCall(func() error {
				limited, cancel := context.WithTimeout(ctx, preferLimit)
				defer cancel()
				return v.prefer(limited, gpu, ids, replicasAsked)
			}, replicaCalls)
			if err != nil {
				return v.explain(err)
			}
			whole.set(s, milliseconds(span))
			if s.name == b.subjects[0].name {
				if policy, err := b.replicaPolicy(); err == nil {
					message.set(s, milliseconds(span)-policy)
				}
			}
			return nil
		})}
}
