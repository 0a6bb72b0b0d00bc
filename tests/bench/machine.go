package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// simLimit is for one command of the simulator, which takes milliseconds.
const simLimit = 20 * time.Second

// machine is a simulated node.
type machine struct {
	sim string
	dir string
}

// onMachine is a measurement that begins with a machine of its own.
func (b *bench) onMachine(name, layout string,
	measure func(ctx context.Context, m machine, s subject) error,
) func(ctx context.Context, s subject) error {
	return func(ctx context.Context, s subject) error {
		m, err := b.newMachine(ctx, name+"-"+s.name, layout)
		if err != nil {
			return err
		}
		return measure(ctx, m, s)
	}
}

// newMachine makes a DGX H100; where there is a layout, every GPU of it is sliced so.
func (b *bench) newMachine(ctx context.Context, name, layout string) (machine, error) {
	m := machine{b.sim, filepath.Join(b.dir, name)}
	if _, err := m.run(ctx, "up", "--profile", "dgx-h100"); err != nil {
		return m, err
	}
	if layout == "" {
		return m, nil
	}
	for number := range gpus {
		if err := m.slice(ctx, number, layout, "--mode", "on"); err != nil {
			return m, err
		}
	}
	return m, nil
}

// slice makes a layout of MIG devices on one GPU.
func (m machine) slice(ctx context.Context, number int, layout string, more ...string) error {
	_, err := m.run(ctx, "mig",
		append([]string{"--gpu", strconv.Itoa(number), "--profiles", layout}, more...)...)
	return err
}

func (m machine) root() string { return filepath.Join(m.dir, "root") }

func (m machine) run(ctx context.Context, command string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, simLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.sim, append([]string{command, "--dir", m.dir}, args...)...)
	var errors strings.Builder
	cmd.Stderr = &errors
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, errors.String())
	}
	return output, nil
}

// nvmlCalls is how often the machine's driver library was called so far, by whomever.
func (m machine) nvmlCalls(ctx context.Context) (int64, error) {
	text, err := m.run(ctx, "calls", "--json")
	if err != nil {
		return 0, err
	}
	var counted struct{ Calls map[string]int64 }
	if err := json.Unmarshal(text, &counted); err != nil {
		return 0, fmt.Errorf("ndp-sim calls: %w", err)
	}
	var sum int64
	for _, count := range counted.Calls {
		sum += count
	}
	return sum, nil
}

// nvmlCallsDuring counts the calls of the driver's library while something is done: the least of
// five times, since what a plugin does by itself now and then (polls, waits for events) falls into
// some of them, and what it does for a request into all.
func (m machine) nvmlCallsDuring(ctx context.Context, do func() error) (float64, error) {
	var least int64
	for time := range 5 {
		before, err := m.nvmlCalls(ctx)
		if err != nil {
			return 0, err
		}
		if err := do(); err != nil {
			return 0, err
		}
		after, err := m.nvmlCalls(ctx)
		if err != nil {
			return 0, err
		}
		if count := after - before; time == 0 || count < least {
			least = count
		}
	}
	return float64(least), nil
}
