package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	gpus = 8
	gpu  = "nvidia.com/gpu"
	// Anything slower than this is a failure, not a measurement.
	patience = 30 * time.Second
	// Whatever a start has set going has ended by then.
	settlingTime = time.Second
)

// bench measures one set of subjects on simulated machines.
type bench struct {
	sim      string // ndp-sim
	dir      string // where the machines are
	bare     string // a gRPC server that does nothing; may be empty
	micro    string // results of the micro benchmarks; may be empty
	subjects []subject
	table    table
}

// part is a group of lines that are measured together, one subject after the other. What it has
// not measured within its limit stays open, and the next part goes on.
type part struct {
	name    string
	limit   time.Duration // for one subject
	rows    []*row
	measure func(ctx context.Context, s subject) error
}

func (b *bench) parts() []part {
	return []part{
		b.startPart(), b.updatePart(), b.faultPart(), b.callsPart(), b.turnsPart(), b.slowLinksPart(), b.policyPart(),
		b.replicasPart(), b.idlePart(), b.migMemoryPart(), b.migIdlePart(), b.repartitionPart(),
		b.filesPart(), b.sizePart(),
	}
}

// measure never fails: what went wrong is noted beside the lines that have no value for it.
func (b *bench) measure(ctx context.Context, p part, s subject) {
	if ctx.Err() != nil {
		p.fail(s, errors.New("was ended before this"))
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.limit,
		fmt.Errorf("not done within the %v that this part has", p.limit))
	defer cancel()
	begin := time.Now()
	err := p.measure(limited, s)
	fmt.Fprintf(os.Stderr, "bench: %s, %s: %.1f s\n", p.name, s.name, time.Since(begin).Seconds())
	if err != nil {
		if cause := context.Cause(limited); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		p.fail(s, err)
	}
}

func (p part) fail(s subject, err error) {
	for _, r := range p.rows {
		if _, measured := r.values[s.name]; !measured {
			r.failed[s.name] = true
		}
	}
	p.rows[0].notes = append(p.rows[0].notes, fmt.Sprintf("%s, %s: %v", p.name, s.name, err))
}

// pause waits for a span, or until the part is over.
func pause(ctx context.Context, span time.Duration) error {
	select {
	case <-time.After(span):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
