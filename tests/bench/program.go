package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopLimit is what a program has from SIGTERM to its end, before it is killed.
const stopLimit = 10 * time.Second

// subject is a program that is measured: how it is called, not a running one.
type subject struct {
	name string
	path string
	args func(m machine) []string
}

// running is a started subject.
type running struct {
	subject subject
	cmd     *exec.Cmd
	started time.Time // just before exec
	log     *os.File
	ended   chan struct{}
}

func (s subject) start(m machine, extra ...string) (*running, error) {
	log, err := os.CreateTemp("", "bench-log-")
	if err != nil {
		return nil, err
	}
	os.Remove(log.Name())
	r := &running{subject: s, log: log, ended: make(chan struct{})}
	r.cmd = exec.Command(s.path, append(s.args(m), extra...)...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.started = time.Now()
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// stop returns the time from SIGTERM to the end.
func (r *running) stop() (time.Duration, error) {
	begin := time.Now()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("%s has ended: %w%s", r.subject.name, err, r.lastWords())
	}
	select {
	case <-r.ended:
		return time.Since(begin), nil
	case <-time.After(stopLimit):
		_ = r.cmd.Process.Kill()
		<-r.ended
		return 0, fmt.Errorf("%s did not end within %v of SIGTERM", r.subject.name, stopLimit)
	}
}

// lastWords are the last lines of a program's log.
func (r *running) lastWords() string {
	text := make([]byte, 2000)
	size, _ := r.log.Seek(0, io.SeekEnd)
	n, _ := r.log.ReadAt(text, max(0, size-int64(len(text))))
	said := strings.TrimSpace(string(text[:n]))
	if said == "" {
		return "; the program has said nothing"
	}
	lines := strings.Split(said, "\n")
	return "\n  | " + strings.Join(lines[max(0, len(lines)-3):], "\n  | ")
}

// strippedSize is the size of the program without symbols, whatever the build left in it.
func (s subject) strippedSize() (int64, error) {
	copied := filepath.Join(os.TempDir(), "bench-stripped")
	defer os.Remove(copied)
	path := s.path
	if strip, err := exec.LookPath("strip"); err == nil {
		if exec.Command(strip, "-o", copied, s.path).Run() == nil {
			path = copied
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
