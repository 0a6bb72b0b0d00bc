package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

// node is one simulated machine, with the kubelet's folder and whatever runs on it.
type node struct {
	t       *testing.T
	dir     string
	kubelet *kubelet
	plugins []*plugin
	klog    string
}

// onNode runs body on a fresh simulated machine, in a process of its own. On failure the logs of
// the plugins and of the kubelet follow the message.
func onNode(t *testing.T, profile string, body func(n *node)) {
	t.Helper()
	inOwnProcess(t, func() {
		n := &node{t: t, dir: filepath.Join(kubeletRoot, "machine")}
		must(t, os.Mkdir(n.dir, 0o755))
		n.klog = filepath.Join(n.dir, "kubelet.log")
		sink, err := os.Create(n.klog)
		must(t, err)
		logOnlyTo(sink)
		t.Cleanup(func() {
			if t.Failed() {
				n.printLogs()
			}
		})
		n.sim("up", "--profile", profile)
		body(n)
	})
}

// logOnlyTo keeps the kubelet's log out of the test's output.
func logOnlyTo(sink *os.File) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{
		"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true", "v": "2",
	} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(sink)
}

// program finds a program under test: the variable's value, else the release build's.
func program(variable, name string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := filepath.Abs(filepath.Join("..", "..", "build", "release", "bin", name))
	if err != nil {
		return name
	}
	return path
}

// sim runs one command of the simulator on this machine.
func (n *node) sim(command string, args ...string) string {
	n.t.Helper()
	cmd := exec.Command(program("NDP_SIM_BIN", "ndp-sim"),
		append([]string{command, "--dir", n.dir}, args...)...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	output, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("%s: %v: %s", strings.Join(cmd.Args, " "), err, errors.String())
	}
	return string(output)
}

func (n *node) driverRoot() string { return filepath.Join(n.dir, "root") }

// write puts a file beside the machine and returns its path.
func (n *node) write(name, text string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	// Replaced by rename, as a mounted ConfigMap is: nobody reads half a file.
	must(n.t, os.WriteFile(path+".new", []byte(text), 0o644))
	must(n.t, os.Rename(path+".new", path))
	return path
}

// sockets lists the sockets in the kubelet's plugin folder apart from the kubelet's own.
func (n *node) sockets() []string {
	n.t.Helper()
	entries, err := os.ReadDir(pluginDir)
	must(n.t, err)
	var found []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket != 0 && entry.Name() != "kubelet.sock" {
			found = append(found, filepath.Join(pluginDir, entry.Name()))
		}
	}
	return found
}

func (n *node) printLogs() {
	for i, p := range n.plugins {
		fmt.Fprintf(os.Stderr, "--- log of plugin %d (%s)\n%s", i+1, p.state(), tail(p.logFile))
	}
	klog.Flush()
	fmt.Fprintf(os.Stderr, "--- log of the kubelet\n%s", tail(n.klog))
}

func tail(path string) string {
	const most = 6000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error() + "\n"
	}
	if len(text) > most {
		text = append([]byte("…"), text[len(text)-most:]...)
	}
	return string(text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// settled is how long a state must last to count as the final one.
const settled = 400 * time.Millisecond
