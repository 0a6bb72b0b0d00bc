package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// How often an update is measured.
const updates = 7

// updatePart measures a rolling update as kubelets up to 1.36 see it: when one of two instances
// ends, they take the other one's connection for its, and have no GPU until that has registered
// again. (1.37 keeps instances apart; there is no gap.)
func (b *bench) updatePart() part {
	rows := []*row{
		newRow("no GPU at a kubelet up to 1.36: the older of two instances ends", "ms", "<= 50"),
		newRow("  the newer ends", "ms", "<= 50"),
		newRow("  the newer is killed", "ms", "<= 50"),
	}
	return part{"update", 60 * time.Second, rows,
		b.onMachine("update", "", func(ctx context.Context, m machine, s subject) error {
			k, err := startOldKubelet(ctx, m)
			if err != nil {
				return err
			}
			defer k.stop()
			for i, end := range []func(older, newer *running) (stays *running, err error){
				func(older, newer *running) (*running, error) {
					_, err := older.stop()
					return newer, err
				},
				func(older, newer *running) (*running, error) {
					_, err := newer.stop()
					return older, err
				},
				func(older, newer *running) (*running, error) {
					return older, newer.cmd.Process.Kill()
				},
			} {
				gaps, err := k.update(ctx, m, s, end)
				if err != nil {
					return err
				}
				rows[i].set(s, milliseconds(median(gaps)))
			}
			return nil
		})}
}

// oldKubelet is ndp-sim's stand-in with the manners of 1.34, in the folder that plugins know.
type oldKubelet struct {
	cmd    *exec.Cmd
	events chan nodeEvent
	last   nodeEvent
}

// nodeEvent is what the stand-in tells: a registration, or what the node offers from now on.
type nodeEvent struct {
	Microseconds int64  `json:"us"`
	Event        string `json:"event"`
	Resources    map[string]struct{ Allocatable int }
}

func startOldKubelet(ctx context.Context, m machine) (*oldKubelet, error) {
	if err := os.Symlink(pluginDir, filepath.Join(m.dir, "kubelet")); err != nil {
		return nil, err
	}
	if err := forget(); err != nil {
		return nil, err
	}
	k := &oldKubelet{events: make(chan nodeEvent, 1000)}
	k.cmd = exec.CommandContext(ctx, m.sim, "kubelet", "--dir", m.dir, "--like", "1.34", "--no-stdin")
	output, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(k.events)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e nodeEvent
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				k.events <- e
			}
		}
	}()
	return k, k.wait(ctx, "its socket", func(e nodeEvent) bool { return e.Event == "listening" })
}

func (k *oldKubelet) stop() {
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	for range k.events {
	}
	_ = k.cmd.Wait()
}

// wait reads on until an event is the one that is waited for; it is then the last one.
func (k *oldKubelet) wait(ctx context.Context, what string, is func(e nodeEvent) bool) error {
	timeout := time.After(patience)
	for {
		select {
		case e, more := <-k.events:
			if !more {
				return fmt.Errorf("the kubelet has ended before %s", what)
			}
			if k.last = e; is(e) {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("not within %v: %s", patience, what)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
	}
}

func (k *oldKubelet) waitOffered(ctx context.Context, full bool) error {
	return k.wait(ctx, fmt.Sprintf("full offer: %v", full), func(e nodeEvent) bool {
		return e.Event == "node" && (e.Resources[gpu].Allocatable == gpus) == full
	})
}

// update has a second instance begin and one of the two end, again and again, and returns how long
// the node then had less than all GPUs.
func (k *oldKubelet) update(ctx context.Context, m machine, s subject,
	end func(older, newer *running) (*running, error)) ([]time.Duration, error) {
	serving, err := s.start(m)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, _ = serving.stop()
		_ = k.waitOffered(ctx, false)
	}()
	if err := k.waitOffered(ctx, true); err != nil {
		return nil, (&served{program: serving}).explain(err)
	}
	var gaps []time.Duration
	for range updates {
		// Instances of a rolling update are seconds apart.
		if err := pause(ctx, settlingTime); err != nil {
			return nil, err
		}
		next, err := s.start(m)
		if err != nil {
			return nil, err
		}
		err = k.wait(ctx, "the second instance", func(e nodeEvent) bool { return e.Event == "list" })
		if err == nil {
			err = pause(ctx, settlingTime/4)
		}
		if err != nil {
			_, _ = next.stop()
			return nil, err
		}
		if serving, err = end(serving, next); err != nil {
			return nil, err
		}
		if err := k.waitOffered(ctx, false); err != nil {
			return nil, (&served{program: serving}).explain(err)
		}
		from := k.last.Microseconds
		if err := k.waitOffered(ctx, true); err != nil {
			return nil, (&served{program: serving}).explain(err)
		}
		gaps = append(gaps, time.Duration(k.last.Microseconds-from)*time.Microsecond)
	}
	return gaps, nil
}
