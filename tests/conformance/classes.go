package conformance

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// classArgs turns every class on that is not of GPUs.
var classArgs = []string{"--gds-enabled", "--mofed-enabled", "--gdrcopy-enabled", "--imex-channel-ids=0"}

// addNodes makes character devices.
func addNodes(t *testing.T, root string, major, minor uint32, mode uint32, names ...string) {
	t.Helper()
	for i, name := range names {
		path := filepath.Join(root, "dev", name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, syscall.Mknod(path, syscall.S_IFCHR|mode, int(major<<8|minor+uint32(i))))
		must(t, os.Chmod(path, os.FileMode(mode)))
	}
}

// addClasses gives a machine what the classes gdrcopy, mofed and gds are made of. Of IMEX channels
// the simulator knows.
func addClasses(t *testing.T, root string) {
	t.Helper()
	addNodes(t, root, 235, 0, 0o666, "gdrdrv")
	addNodes(t, root, 231, 192, 0o660, "infiniband/uverbs0", "infiniband/uverbs1")
	addNodes(t, root, 10, 58, 0o666, "infiniband/rdma_cm")
	addNodes(t, root, 240, 0, 0o600, "nvidia-fs0", "nvidia-fs1")
	must(t, os.Lchown(filepath.Join(root, "dev/infiniband/uverbs0"), 0, 112))
	must(t, os.MkdirAll(filepath.Join(root, "run/udev"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "etc/cufile.json"), nil, 0o644))
}
