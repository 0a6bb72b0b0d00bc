package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// microResult is one line of a micro benchmark, as Google Benchmark writes it.
type microResult struct {
	Name  string  `json:"name"`
	Time  float64 `json:"real_time"`
	CPU   float64 `json:"cpu_time"`
	Unit  string  `json:"time_unit"`
	Error string  `json:"error_message"`
}

// slowest returns the longest time of the lines whose name matches, in milliseconds; what is taken
// for the time is chosen by the caller.
func (b *bench) slowest(program, pattern string, of func(microResult) float64) (float64, error) {
	if b.micro == "" {
		return 0, errors.New("the micro benchmarks have not been run (make bench runs them)")
	}
	text, err := os.ReadFile(filepath.Join(b.micro, program+".json"))
	if err != nil {
		return 0, fmt.Errorf("the micro benchmark has left no result: %w", err)
	}
	var file struct{ Benchmarks []microResult }
	if err := json.Unmarshal(text, &file); err != nil {
		return 0, fmt.Errorf("%s.json: %w", program, err)
	}
	units := map[string]time.Duration{"ns": 1, "us": time.Microsecond, "ms": time.Millisecond}
	matches := regexp.MustCompile(pattern)
	slowest := -1.0
	for _, result := range file.Benchmarks {
		if !matches.MatchString(result.Name) {
			continue
		}
		unit, known := units[result.Unit]
		if result.Error != "" || !known {
			return 0, fmt.Errorf("%s: %s%s", result.Name, result.Error, result.Unit)
		}
		slowest = max(slowest, of(result)*float64(unit)/float64(time.Millisecond))
	}
	if slowest < 0 {
		return 0, fmt.Errorf("%s.json has no line %s", program, pattern)
	}
	return slowest, nil
}

func byClock(r microResult) float64     { return r.Time }
func byProcessor(r microResult) float64 { return r.CPU }

// microLine is a line of the table that comes from a micro benchmark.
type microLine struct {
	row     *row
	pattern string
	of      func(microResult) float64
}

// microPart takes lines from the micro benchmarks, which know our functions only.
func (b *bench) microPart(name, program string, lines ...microLine) part {
	var rows []*row
	for _, line := range lines {
		rows = append(rows, line.row)
	}
	return part{name, time.Second, rows, func(_ context.Context, s subject) error {
		if s.name != b.subjects[0].name {
			return nil
		}
		for _, line := range lines {
			value, err := b.slowest(program, line.pattern, line.of)
			if err != nil {
				return err
			}
			line.row.set(s, value)
		}
		return nil
	}}
}

func (b *bench) policyPart() part {
	return b.microPart("policy", "preferred_bench",
		microLine{newRow("policy function, 8 GPUs, slowest of every size", "ms", "<= 0.2"),
			"^WholeGpus/gpus:8/", byClock},
		microLine{newRow("policy function, 16 GPUs, slowest of every size", "ms", "<= 20"),
			"^WholeGpus/gpus:16/", byClock},
		microLine{newRow("policy function, 64 GPUs, slowest of 13 sizes", "ms", "<= 10"),
			"^WholeGpus/gpus:64/", byClock},
		microLine{newRow("policy function, 8 of 8 x 7,000 replicas, slowest way", "ms", "<= 10"),
			"^Replicas/replicas:7000/size:8/", byClock})
}

// replicaPolicy is the time of the policy function alone, as replicasPart asks it.
func (b *bench) replicaPolicy() (float64, error) {
	return b.slowest("preferred_bench", "^Replicas/replicas:7000/size:8/packed:0/cold:0/", byClock)
}

func (b *bench) filesPart() part {
	const line = "^BM_SnapshotToFile"
	return b.microPart("cdi", "cdi_bench",
		microLine{newRow("CDI, 8 GPUs x 7 MIG, 60 libraries: snapshot to renamed file", "ms", "<= 30"),
			line, byClock},
		microLine{newRow("  of that, on a processor", "ms", ""), line, byProcessor})
}

func (b *bench) sizePart() part {
	size := newRow("program, stripped", "MB", "<= 10")
	return part{"size", 30 * time.Second, []*row{size}, func(_ context.Context, s subject) error {
		bytes, err := s.strippedSize()
		if err == nil {
			size.set(s, float64(bytes)/1e6)
		}
		return err
	}}
}
