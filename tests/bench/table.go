package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one line of the result: a measure, and its value for each subject.
type row struct {
	what   string
	unit   string
	values map[string]float64
	failed map[string]error
}

type table struct {
	subjects []string // the first is ours
	rows     []*row
}

func (t *table) row(what, unit string) *row {
	r := &row{what, unit, map[string]float64{}, map[string]error{}}
	t.rows = append(t.rows, r)
	return r
}

// set notes a value, or why there is none; a failed measurement is shown and ends nothing.
func (r *row) set(subject string, value float64, err error) {
	if err != nil {
		r.failed[subject] = err
		return
	}
	r.values[subject] = value
}

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	header := "measure\tunit\t"
	for _, subject := range t.subjects {
		header += subject + "\t"
	}
	if len(t.subjects) > 1 {
		header += "ratio\t"
	}
	fmt.Fprintln(w, header)
	for _, r := range t.rows {
		line := r.what + "\t" + r.unit + "\t"
		for _, subject := range t.subjects {
			line += r.cell(subject) + "\t"
		}
		if len(t.subjects) > 1 {
			line += r.ratio(t.subjects[0], t.subjects[1]) + "\t"
		}
		fmt.Fprintln(w, line)
	}
	w.Flush()
	for _, r := range t.rows {
		for _, subject := range t.subjects {
			if err := r.failed[subject]; err != nil {
				fmt.Fprintf(out, "%s, %s: %v\n", r.what, subject, err)
			}
		}
	}
}

func (r *row) cell(subject string) string {
	value, measured := r.values[subject]
	switch {
	case r.failed[subject] != nil:
		return "failed"
	case !measured:
		return "-"
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}

func (r *row) ratio(ours, other string) string {
	a, first := r.values[ours]
	b, second := r.values[other]
	if !first || !second || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func median[T float64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
