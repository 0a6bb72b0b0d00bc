package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"
)

const (
	// kubeletRoot is a private tmpfs in the process of each test: the kubelet's plugin folder has
	// a fixed place below it.
	kubeletRoot = "/var/lib/kubelet"
	pluginDir   = kubeletRoot + "/device-plugins"

	// isolatedTest names the one test that a re-executed test program is to run.
	isolatedTest = "NDP_CONFORMANCE_TEST"
	testLimit    = 4 * time.Minute
)

var (
	skipLine = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)\n--- SKIP`)
	// The frame that go test puts round a test; the parent's own is enough.
	frameLine = regexp.MustCompile(`(?m)^(=== .*|\s*--- (PASS|FAIL): .*|FAIL|PASS|exit status .*)\n`)
)

// runTests is TestMain's body: it tells the processes of single tests from the one that starts them.
func runTests(m *testing.M) int {
	if os.Getenv(isolatedTest) != "" {
		if err := enterPrivateFolders(); err != nil {
			fmt.Fprintln(os.Stderr, "prepare the private folders of a test:", err)
			return 1
		}
	}
	return m.Run()
}

// inOwnProcess runs body in a fresh process of this test program that has its own mounts and
// process ids. With the process ends everything that was started or mounted in it.
func inOwnProcess(t *testing.T, body func()) {
	t.Helper()
	if os.Getenv(isolatedTest) == t.Name() {
		body()
		return
	}
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v",
		"-test.timeout="+testLimit.String())
	cmd.Env = append(os.Environ(), isolatedTest+"="+t.Name())
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS, // the runtime makes all mounts private as well
		Pdeathsig:    syscall.SIGKILL,
	}
	// Pdeathsig follows the thread that starts the child, so the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if skipped := skipLine.FindStringSubmatch(output.String()); err == nil && skipped != nil {
		t.Skip(skipped[1])
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Fatalf("kubelet %s:\n%s", kubeletVersion, frameLine.ReplaceAllString(output.String(), ""))
	case err != nil:
		t.Fatalf("start a process with its own mounts (this needs root): %v", err)
	}
}

// enterPrivateFolders replaces, for this process and its children, the folders that a kubelet and
// a plugin write to. /run holds the default place of CDI files.
func enterPrivateFolders() error {
	if _, err := os.Stat(kubeletRoot); err != nil {
		// No folder of the host may be made only to serve as a mount point.
		if err := mountTmpfs(filepath.Dir(kubeletRoot)); err != nil {
			return err
		}
		if err := os.Mkdir(kubeletRoot, 0o755); err != nil {
			return err
		}
	}
	for _, folder := range []string{kubeletRoot, "/run"} {
		if err := mountTmpfs(folder); err != nil {
			return err
		}
	}
	// The process ids changed with the namespace, so the old /proc would name strangers.
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return os.Mkdir(pluginDir, 0o750)
}

func mountTmpfs(folder string) error {
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", folder, err)
	}
	return nil
}
