package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one line of the result: a measure, what it should be, and its value for each subject.
type row struct {
	what   string
	unit   string
	want   string // for the first subject; empty where nothing is promised
	values map[string]float64
	failed map[string]bool
	notes  []string // why values are missing, or what else is to be said; printed below the table
}

type table struct {
	subjects []string // the first is ours
	rows     []*row
}

func newRow(what, unit, want string) *row {
	return &row{what, unit, want, map[string]float64{}, map[string]bool{}, nil}
}

func (r *row) set(s subject, value float64) { r.values[s.name] = value }

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	header := "measure\tunit\twant\t"
	for _, subject := range t.subjects {
		header += subject + "\t"
	}
	if len(t.subjects) > 1 {
		header += "ratio\t"
	}
	fmt.Fprintln(w, header)
	for _, r := range t.rows {
		line := r.what + "\t" + r.unit + "\t" + cmp.Or(r.want, "-") + "\t"
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
		for _, note := range r.notes {
			fmt.Fprintln(out, note)
		}
	}
}

func (r *row) cell(subject string) string {
	value, measured := r.values[subject]
	switch {
	case r.failed[subject]:
		return "failed"
	case !measured:
		return "-"
	case value == float64(int64(value)):
		return fmt.Sprintf("%.0f", value)
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 0.1:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.4f", value)
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
