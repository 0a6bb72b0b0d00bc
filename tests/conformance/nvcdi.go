//go:build !kubelet134

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tags.cncf.io/container-device-interface/specs-go"
)

const gpuFile = "k8s.device-plugin.nvidia.com-gpu.json"

// difference is a deliberate one between NVIDIA's file and ours. change makes ours of theirs, and
// says whether there was anything to change: a difference that is none must not stay listed.
type difference struct {
	reason string
	change func(theirs *specs.Spec) bool
}

// comparison is one set of options, given to the plugin and to NVIDIA's generator alike.
type comparison struct {
	t          *testing.T
	n          *node
	host       string // the machine's root
	driverRoot string // where both programs see the driver's
	args       []string
	chroot     bool // both programs have the machine's root as theirs
	env        []string
	theirArgs  []string          // for NVIDIA's generator, where it needs others
	want       map[string][]byte // NVIDIA's files, where they were made before
	files      map[string][]byte // ours, after same
}

func (n *node) newComparison(t *testing.T, args ...string) *comparison {
	t.Helper()
	// Of nodes that could not be made, which NVIDIA's generator does not read.
	if err := os.Remove(filepath.Join(n.driverRoot(), "dev.list")); !os.IsNotExist(err) {
		must(t, err)
	}
	return &comparison{t: t, n: n, host: n.driverRoot(), driverRoot: n.driverRoot(), args: args}
}

// onPlainHost is a comparison in which both programs see the machine's root at /.
func (n *node) onPlainHost(t *testing.T, args ...string) *comparison {
	t.Helper()
	c := n.newComparison(t, args...)
	c.chroot = true
	// Programs want a /proc that knows them. What the driver adds to it is the machine's still.
	proc, driver := filepath.Join(c.host, "proc"), filepath.Join(c.host, "proc/driver")
	aside := filepath.Join(n.dir, "proc-driver")
	must(t, os.MkdirAll(aside, 0o755))
	must(t, os.MkdirAll(driver, 0o755))
	must(t, syscall.Mount(driver, aside, "", syscall.MS_BIND, ""))
	must(t, syscall.Mount("proc", proc, "proc", 0, ""))
	must(t, syscall.Mount(aside, driver, "", syscall.MS_BIND, ""))
	t.Cleanup(func() {
		for _, place := range []string{driver, proc, aside} {
			must(t, syscall.Unmount(place, 0))
		}
	})
	return c
}

// same fails unless both write the same files, but for the differences. It returns our file of GPUs.
func (c *comparison) same(differences ...difference) *specs.Spec {
	c.t.Helper()
	theirs := c.want
	if theirs == nil {
		var err error
		if theirs, err = c.theirs(); err != nil {
			c.t.Fatalf("NVIDIA's generator: %v", err)
		}
	}
	if theirs[gpuFile] == nil {
		c.t.Fatal("NVIDIA's generator wrote no file for the GPUs")
	}
	ours := c.ours()
	c.files = ours
	if got, want := names(ours), names(theirs); !slices.Equal(got, want) {
		c.t.Errorf("files are %q, NVIDIA's %q", got, want)
	}
	used := make([]bool, len(differences))
	for name, text := range theirs {
		if ours[name] == nil || (len(differences) == 0 && bytes.Equal(ours[name], text)) {
			continue
		}
		want := c.parse(name, text)
		for i, d := range differences {
			used[i] = d.change(want) || used[i]
		}
		if lines := differing(encode(c.t, want), encode(c.t, c.parse(name, ours[name]))); len(lines) > 0 {
			c.t.Errorf("%s (-: only in NVIDIA's, +: only in ours)\n%s", name, strings.Join(lines, "\n"))
		}
	}
	for i, d := range differences {
		if !used[i] {
			c.t.Errorf("there is no longer a difference: %s", d.reason)
		}
	}
	return c.parse(gpuFile, ours[gpuFile])
}

// theirsFails checks that NVIDIA's generator gives up, with these words, where ours does not.
func (c *comparison) theirsFails(words string) {
	c.t.Helper()
	if _, err := c.theirs(); err == nil || !strings.Contains(err.Error(), words) {
		c.t.Errorf("NVIDIA's generator was expected to fail with %q, got: %v", words, err)
	}
}

func names(files map[string][]byte) []string { return slices.Sorted(maps.Keys(files)) }

func (c *comparison) parse(name string, text []byte) *specs.Spec {
	c.t.Helper()
	spec := &specs.Spec{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(spec); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return spec
}

func encode(t *testing.T, spec *specs.Spec) []byte {
	t.Helper()
	text, err := json.Marshal(spec)
	must(t, err)
	return text
}

func (c *comparison) options(folder string, args []string) []string {
	host, root := c.host, c.driverRoot
	if c.chroot {
		host, root, folder = "/", c.fromRoot(root), c.fromRoot(folder)
	}
	return append([]string{"--driver-root-ctr-path=" + root, "--host-root=" + host,
		"--cdi-spec-dir=" + folder}, args...)
}

// fromRoot is a path as a process sees it that has the machine's root as its own.
func (c *comparison) fromRoot(path string) string {
	inside, err := filepath.Rel(c.host, path)
	must(c.t, err)
	return filepath.Join("/", inside)
}

func (c *comparison) folder() string {
	c.t.Helper()
	parent := c.n.dir
	if c.chroot {
		parent = filepath.Join(c.host, "tmp")
		must(c.t, os.MkdirAll(parent, 0o755))
	}
	folder, err := os.MkdirTemp(parent, "cdi-")
	must(c.t, err)
	return folder
}

// theirs runs NVIDIA's generator.
func (c *comparison) theirs() (map[string][]byte, error) {
	c.t.Helper()
	folder := c.folder()
	args := c.args
	if c.theirArgs != nil {
		args = c.theirArgs
	}
	cmd := c.command(program("NDP_NVCDI", "nvcdi"), c.options(folder, args))
	var messages bytes.Buffer
	cmd.Stderr = &messages
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, messages.String())
	}
	return c.read(folder), nil
}

// ours runs the plugin until it has written the file of the GPUs. There is no kubelet: the files are
// written before one is looked for.
func (c *comparison) ours() map[string][]byte {
	c.t.Helper()
	folder := c.folder()
	cmd := c.command(program("NDP_BIN", "ndp"), append([]string{"device-plugin",
		"--device-list-strategy=cdi-cri", "--kubelet-socket=/nowhere/kubelet.sock"}, c.options(folder, c.args)...))
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &messages, &messages
	must(c.t, cmd.Start())
	c.t.Cleanup(func() { _ = cmd.Process.Kill() }) // of no effect after its end
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	file := filepath.Join(folder, gpuFile)
	eventually(c.t, patience, "the plugin writes "+file, func() (bool, string) {
		select {
		case err := <-ended:
			c.t.Fatalf("the plugin ended: %v\n%s", err, messages.String())
		default:
		}
		_, err := os.Stat(file)
		return err == nil, fmt.Sprint(err, "; it says: ", messages.String())
	})
	// What it was about to write when the signal came is written too.
	must(c.t, cmd.Process.Signal(syscall.SIGTERM))
	must(c.t, <-ended)
	return c.read(folder)
}

func (c *comparison) command(path string, args []string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	// Both look for programs and for data along these.
	cmd.Env = append(os.Environ(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
		"XDG_DATA_DIRS=/usr/local/share:/usr/share")
	cmd.Env = append(cmd.Env, c.env...)
	if c.chroot {
		cmd.Path = c.install(path)
		cmd.Dir = "/"
		cmd.SysProcAttr.Chroot = c.host
	}
	return cmd
}

// install copies a program into the machine's root, with the libraries that it is linked to.
func (c *comparison) install(program string) string {
	c.t.Helper()
	linked, err := exec.Command("ldd", program).Output()
	must(c.t, err)
	for field := range strings.FieldsSeq(string(linked)) {
		if filepath.IsAbs(field) {
			c.copyIn(field, field)
		}
	}
	inside := filepath.Join("/opt", filepath.Base(program))
	c.copyIn(program, inside)
	return inside
}

func (c *comparison) copyIn(from, to string) {
	c.t.Helper()
	content, err := os.ReadFile(from)
	must(c.t, err)
	to = filepath.Join(c.host, to)
	must(c.t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(c.t, os.WriteFile(to, content, 0o755))
}

func (c *comparison) read(folder string) map[string][]byte {
	c.t.Helper()
	entries, err := os.ReadDir(folder)
	must(c.t, err)
	files := map[string][]byte{}
	for _, entry := range entries {
		files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name()))
		must(c.t, err)
	}
	return files
}
