//go:build !kubelet134

package conformance

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// compareDisarranged does random things to a machine, again and again from the same start, and compares
// what both programs make of it, if NVIDIA's generator makes anything. NDP_RANDOM_ROOTS says how often.
func compareDisarranged(t *testing.T, n *node, parts, args []string, disarrange func(random *rand.Rand)) {
	t.Helper()
	rounds := 30
	if text := os.Getenv("NDP_RANDOM_ROOTS"); text != "" {
		count, err := strconv.Atoi(text)
		must(t, err)
		rounds = count
	}
	kept := filepath.Join(n.dir, "kept")
	must(t, os.Mkdir(kept, 0o755))
	copyParts := func(t *testing.T, from, to string) {
		for _, part := range parts {
			must(t, os.RemoveAll(filepath.Join(to, part)))
			if output, err := exec.Command("cp", "-a", filepath.Join(from, part), to).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v: %s", err, output)
			}
		}
	}
	copyParts(t, n.driverRoot(), kept)
	compared := 0
	for seed := range rounds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			copyParts(t, kept, n.driverRoot())
			disarrange(rand.New(rand.NewPCG(uint64(seed), 1)))
			c := n.onPlainHost(t, args...)
			want, err := c.theirs()
			if err != nil {
				t.Skip("NVIDIA's generator: ", err)
			}
			c.want = want
			c.same()
			compared++
			if t.Failed() {
				t.Logf("of round %d", seed)
			}
		})
	}
	if compared < rounds/2 {
		t.Errorf("only %d of %d rounds were compared", compared, rounds)
	}
}

// Driver roots as no distribution makes them: files missing, doubled, linked to each other, folders
// in their places.
func TestNVIDIAsSpecOfDisarrangedDriverRoots(t *testing.T) {
	onNode(t, "a30", func(n *node) {
		furnish(t, n.driverRoot())
		compareDisarranged(t, n, []string{"usr", "etc", "lib", "run"},
			[]string{"--cdi-feature-flags=enable-explicit-driver-libraries"},
			func(random *rand.Rand) { disarrangeFiles(t, n.driverRoot(), random) })
	})
}

// Device nodes that are none, of other groups and modes, or missing; links to the wrong ones.
func TestNVIDIAsSpecOfDisarrangedDevices(t *testing.T) {
	onNode(t, "gb200", func(n *node) {
		addClasses(t, n.driverRoot())
		compareDisarranged(t, n, []string{"dev", "sys"}, classArgs,
			func(random *rand.Rand) { disarrangeNodes(t, n.driverRoot(), random) })
	})
}

// disarrangeNodes leaves the nodes of GPUs, without which a device is not in our file, and those of
// IMEX channels.
func disarrangeNodes(t *testing.T, root string, random *rand.Rand) {
	t.Helper()
	var nodes, links []string
	must(t, filepath.WalkDir(filepath.Join(root, "dev"), func(path string, entry fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil:
			return err
		case entry.Type()&fs.ModeSymlink != 0:
			links = append(links, path)
		case !entry.IsDir() && !strings.Contains(path, "imex") && !regexp.MustCompile("^nvidia[0-9]").MatchString(name):
			nodes = append(nodes, path)
		}
		return nil
	}))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	for range 1 + random.IntN(10) {
		node, link := pick(nodes), pick(links)
		switch random.IntN(9) {
		case 0:
			must(t, os.RemoveAll(node))
		case 1:
			must(t, os.RemoveAll(node))
			must(t, os.WriteFile(node, nil, 0o666))
		case 2:
			must(t, os.RemoveAll(node))
			must(t, os.Symlink(pick(nodes), node))
		case 3:
			must(t, os.RemoveAll(node))
			must(t, syscall.Mknod(node, syscall.S_IFBLK|0o660, 8<<8|3))
		case 4, 5:
			if info, err := os.Lstat(node); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				must(t, os.Chmod(node, []os.FileMode{0, 0o444, 0o600, 0o660, 0o666, 0o777}[random.IntN(6)]))
				must(t, os.Chown(node, 0, random.IntN(3)*55))
			}
		case 6:
			must(t, os.RemoveAll(link))
		case 7:
			must(t, os.RemoveAll(link))
			target := pick(nodes)
			if random.IntN(2) == 0 {
				target = "../" + filepath.Base(target)
			} else {
				target = strings.TrimPrefix(target, root)
			}
			must(t, os.Symlink(target, link))
		case 8:
			cards, err := filepath.Glob(filepath.Join(root, "sys/bus/pci/devices/*/drm"))
			must(t, err)
			name := []string{"card0", "card1", "card2", "renderD130", "controlD64"}[random.IntN(5)]
			must(t, os.MkdirAll(filepath.Join(pick(cards), name), 0o755))
		}
	}
}

// disarrangeFiles leaves the library that both programs need.
func disarrangeFiles(t *testing.T, root string, random *rand.Rand) {
	t.Helper()
	var files, folders []string
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		inside := strings.TrimPrefix(path, root+"/")
		top, _, _ := strings.Cut(inside, "/")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && !slices.Contains([]string{root, "usr", "etc", "lib", "run"}, top) && path != root:
			return fs.SkipDir
		case entry.IsDir():
			folders = append(folders, path)
		case !strings.Contains(path, "libnvidia-ml"):
			files = append(files, path)
		}
		return nil
	}))
	folders = append(folders, filepath.Join(root, "usr/lib64"), filepath.Join(root, "lib64"),
		filepath.Join(root, "usr/lib/x86_64-linux-gnu/nvidia/current/vdpau"),
		filepath.Join(root, "usr/lib/xorg/modules/drivers"), filepath.Join(root, "etc/vulkan/implicit_layer.d"))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	link := func(target, path string) {
		switch random.IntN(4) {
		case 0:
			target = "/" + strings.TrimPrefix(target, root+"/")
		case 1:
			target = "gone"
		default:
			var err error
			target, err = filepath.Rel(filepath.Dir(path), target)
			must(t, err)
		}
		must(t, os.Symlink(target, path))
	}
	for range 1 + random.IntN(30) {
		file := pick(files)
		if _, err := os.Lstat(file); err != nil {
			continue
		}
		switch random.IntN(7) {
		case 0:
			must(t, os.Remove(file))
		case 1:
			must(t, os.Remove(file))
			must(t, os.Mkdir(file, 0o755))
		case 2:
			// Not to a socket: two mounts of different options at one place are in no order that NVIDIA's
			// generator promises.
			must(t, os.Remove(file))
			if target := pick(files); !strings.Contains(target, "/run/") {
				link(target, file)
			}
		case 3:
			must(t, os.Lchown(file, 0, 0))
			if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
				must(t, os.Chmod(file, []os.FileMode{0, 0o644, 0o755}[random.IntN(3)]))
			}
		case 4, 5:
			folder := pick(folders)
			if os.MkdirAll(folder, 0o755) != nil {
				continue
			}
			other := filepath.Join(folder, filepath.Base(file))
			if _, err := os.Lstat(other); err != nil && !strings.Contains(file, "/run/") {
				link(file, other)
			}
		case 6:
			info, err := os.Stat(file)
			if err == nil && info.Mode().IsRegular() {
				must(t, os.Truncate(file, info.Size()*int64(random.IntN(100))/100))
			}
		}
	}
}

// CSV files of a Tegra that name anything: patterns, links to links, the same thing twice.
func TestNVIDIAsSpecOfDisarrangedTegras(t *testing.T) {
	onNode(t, "jetson", func(n *node) {
		compareDisarranged(t, n, []string{"usr", "etc", "dev"},
			[]string{"--device-discovery-strategy=tegra", "--device-id-strategy=index"},
			func(random *rand.Rand) { disarrangeTegra(t, n.driverRoot(), random) })
	})
}

func disarrangeTegra(t *testing.T, root string, random *rand.Rand) {
	t.Helper()
	const folder = "/usr/lib/aarch64-linux-gnu/nvidia"
	paths := []string{folder + "/libcuda.so.1.1", folder + "/libnvrm_gpu.so", folder + "/libcuda.so.1",
		"/usr/lib/aarch64-linux-gnu/libcuda.so", "/usr/share/glvnd/egl_vendor.d", "/dev/nvmap",
		"/dev/nvhost-gpu", "/not/there", "/etc/nv_tegra_release"}
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	version := []string{"", ".1", ".1.1", ".so", ".so.1", ".so.1.2", ".so.540.4.0"}
	for i := range random.IntN(8) {
		path := fmt.Sprintf("%s/lib%c%s", folder, 'a'+i, pick(version))
		if random.IntN(3) == 0 {
			path = fmt.Sprintf("/usr/lib/aarch64-linux-gnu/lib%c%s", 'a'+i, pick(version))
		}
		inside := filepath.Join(root, path)
		switch random.IntN(4) {
		case 0:
			content, err := os.ReadFile(filepath.Join(root, folder, "libcuda.so.1.1"))
			must(t, err)
			must(t, os.WriteFile(inside, content, 0o755))
		case 1:
			must(t, os.Symlink(pick(paths), inside))
		case 2:
			target, err := filepath.Rel(filepath.Dir(path), pick(paths))
			must(t, err)
			must(t, os.Symlink(target, inside))
		case 3:
			must(t, os.Mkdir(inside, 0o755))
		}
		paths = append(paths, path)
	}
	paths = append(paths, folder+"/*", folder+"/*.so*", "/usr/lib/*/nvidia/lib*", "/dev/nvhost-*", "/dev/*",
		"/usr/share/glvnd/*", folder+"//libcuda.so.1", "relative/path", "")
	for _, name := range []string{"devices.csv", "drivers.csv", "l4t.csv"} {
		var text strings.Builder
		for range random.IntN(12) {
			fmt.Fprintf(&text, pick([]string{"%s, %s\n", "%s,%s\n", " %s ,  %s \n", "%s, %s, more\n", "%s %s\n"}),
				pick([]string{"dev", "lib", "lib", "sym", "sym", "dir", "file", "DEV"}), pick(paths))
		}
		if name == "devices.csv" {
			text.WriteString("dev, /dev/nvmap\n") // without a node a device is not in our file
		}
		must(t, os.WriteFile(filepath.Join(root, csvFolder, name), []byte(text.String()), 0o644))
	}
}
