package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// residentBytes adds up what a process has resident, without the pages of the simulated driver
// library and of the simulator's state: on a real node those are the driver's.
func residentBytes(pid int, simulator string) (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var total int64
	counted := true
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case strings.Contains(fields[0], "-") && !strings.HasSuffix(fields[0], ":"):
			counted = !strings.Contains(line, "libnvidia-ml") && !strings.Contains(line, simulator)
		case fields[0] == "Rss:" && counted:
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, err
			}
			total += kib << 10
		}
	}
	return total, nil
}

// activity is what the scheduler knows of all threads of a process.
type activity struct {
	voluntarySwitches int64
	cpu               time.Duration
}

func activityOf(pid int) (activity, error) {
	var sum activity
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return sum, fmt.Errorf("process %d has ended", pid)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread + "/status")
		if err != nil {
			continue // a thread that has just ended
		}
		for line := range strings.Lines(string(status)) {
			if value, found := strings.CutPrefix(line, "voluntary_ctxt_switches:"); found {
				switches, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				if err != nil {
					return sum, err
				}
				sum.voluntarySwitches += switches
			}
		}
		// Nanoseconds on a processor; /proc/PID/stat counts in hundredths of a second only.
		if schedule, err := os.ReadFile(thread + "/schedstat"); err == nil {
			spent, _, _ := strings.Cut(string(schedule), " ")
			nanoseconds, err := strconv.ParseInt(spent, 10, 64)
			if err != nil {
				return sum, err
			}
			sum.cpu += time.Duration(nanoseconds)
		}
	}
	return sum, nil
}

// idle watches processes for a while and returns wake-ups per second and the share of one
// processor, in percent.
func idle(ctx context.Context, pids []int, span time.Duration) (perSecond, percent []float64,
	err error) {
	before := make([]activity, len(pids))
	for i, pid := range pids {
		if before[i], err = activityOf(pid); err != nil {
			return nil, nil, err
		}
	}
	begin := time.Now()
	if err := pause(ctx, span); err != nil {
		return nil, nil, err
	}
	seconds := time.Since(begin).Seconds()
	for i, pid := range pids {
		after, err := activityOf(pid)
		if err != nil {
			return nil, nil, err
		}
		switches := after.voluntarySwitches - before[i].voluntarySwitches
		perSecond = append(perSecond, float64(switches)/seconds)
		percent = append(percent, 100*(after.cpu-before[i].cpu).Seconds()/seconds)
	}
	return perSecond, percent, nil
}
