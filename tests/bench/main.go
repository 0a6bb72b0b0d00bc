// Command bench measures a device plugin as its node feels it: how soon a pod can be admitted, how
// long each admission waits for it, and what it costs while nothing happens.
//
// It plays the kubelet's part with the kubelet's own API package, on a simulated DGX H100, and
// drives any device plugin program the same way; run.sh makes the private folders for it. It never
// fails on a number.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	ndp := flag.String("ndp", "", "the plugin (ndp)")
	sim := flag.String("sim", "", "the simulator (ndp-sim)")
	other := flag.String("other", "", "another device plugin program to compare with")
	bare := flag.String("bare", "", "a gRPC server that does nothing, for the idle figures")
	only := flag.String("only", "", "one of start, fault, calls, idle, size")
	flag.Parse()
	if *ndp == "" || *sim == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*ndp, *sim, *other, *bare, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ndp, sim, other, bare, only string) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m := machine{sim, dir}
	if err := m.run("up", "--profile", "dgx-h100"); err != nil {
		return err
	}
	if err := os.MkdirAll(pluginDir, 0o750); err != nil {
		return err
	}
	b := &bench{machine: m, bare: bare}
	b.subjects = []subject{{"ndp", ndp, []string{"device-plugin", "--driver-root-ctr-path", m.root(),
		"--host-root", m.root(), "--kubelet-socket", pluginDir + "/kubelet.sock"}}}
	if other == "" {
		fmt.Println("OTHER is not set: no column for another plugin (make bench OTHER=<program>)")
	} else {
		b.subjects = append(b.subjects,
			subject{"other", other, []string{"--driver-root-ctr-path", m.root()}})
	}
	if bare == "" {
		fmt.Println("no bare gRPC server was built: the idle figures stand alone")
	}
	for _, s := range b.subjects {
		b.table.subjects = append(b.table.subjects, s.name)
	}
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"start", b.lifeCycle}, {"fault", b.faultReactions}, {"calls", b.calls}, {"idle", b.atRest},
		{"size", b.sizes},
	} {
		if only == "" || only == part.name {
			fmt.Fprintf(os.Stderr, "bench: %s …\n", part.name)
			part.run()
		}
	}
	b.table.print(os.Stdout)
	return nil
}
