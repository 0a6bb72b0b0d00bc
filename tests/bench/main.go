// Command bench measures a device plugin as its node feels it: how soon a pod can be admitted, how
// long each admission waits for it, and what it costs while nothing happens.
//
// It plays the kubelet's part with the kubelet's own API package, on simulated nodes, and drives
// any device plugin program the same way; run.sh makes the private folders for it. It never fails
// on a number. What each line means is told in docs/performance.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	b := &bench{}
	ndp := flag.String("ndp", "", "the plugin (ndp)")
	sim := flag.String("sim", "", "the simulator (ndp-sim)")
	other := flag.String("other", "", "another device plugin program to compare with")
	flag.StringVar(&b.bare, "bare", "", "a gRPC server that does nothing, for the idle figures")
	flag.StringVar(&b.micro, "micro", "", "folder with the results of the micro benchmarks")
	only := flag.String("only", "", "comma list of parts to measure; see -list")
	list := flag.Bool("list", false, "name the parts and end")
	flag.Parse()
	parts := b.parts()
	if *list {
		for _, p := range parts {
			fmt.Printf("%-12s at most %v for one program\n", p.name, p.limit)
		}
		return
	}
	if *ndp == "" || *sim == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	parts, err := choose(parts, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: -only:", err)
		os.Exit(2)
	}
	// Whoever ends it early gets what there is.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := b.run(ctx, *ndp, *sim, *other, parts); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func choose(parts []part, only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q; -list names them", name)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

func (b *bench) run(ctx context.Context, ndp, sim, other string, parts []part) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.sim, b.dir = sim, dir
	if err := os.MkdirAll(pluginDir, 0o750); err != nil {
		return err
	}
	b.subjects = []subject{{"ndp", ndp, func(m machine) []string {
		return []string{"device-plugin", "--driver-root-ctr-path", m.root(), "--host-root", m.root(),
			"--kubelet-socket", pluginDir + "/kubelet.sock"}
	}}}
	if other == "" {
		fmt.Println("OTHER is not set: no column for another plugin (make bench OTHER=<program>)")
	} else {
		b.subjects = append(b.subjects, subject{"other", other, func(m machine) []string {
			return []string{"--driver-root-ctr-path", m.root()}
		}})
	}
	if b.bare == "" {
		fmt.Println("no bare gRPC server was built: the idle figures stand alone")
	}
	for _, s := range b.subjects {
		b.table.subjects = append(b.table.subjects, s.name)
	}
	for _, p := range parts {
		b.table.rows = append(b.table.rows, p.rows...)
	}
	begin := time.Now()
	for _, p := range parts {
		for _, s := range b.subjects {
			b.measure(ctx, p, s)
		}
	}
	b.table.print(os.Stdout)
	fmt.Printf("measured in %.0f s; docs/performance.md tells what each line means\n",
		time.Since(begin).Seconds())
	return context.Cause(ctx)
}
