// Command nvcdi writes the CDI files that NVIDIA's own generator, pkg/nvcdi of the container toolkit,
// makes of a machine. It takes the device plugin's options and hands them on as NVIDIA's plugin does.
// It is a module of its own, so that the toolkit and the kubelet of the conformance tests need not
// agree on versions.
//
// The generator looks below / for sysfs, for MIG minors and, where the driver root has no /dev, for
// device nodes. Those of the machine at -host-root are bound there, so the program wants mounts of
// its own (the caller unshares them).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvlib/pkg/nvlib/info"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/spec"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/transform"
	transformroot "github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/transform/root"
	"github.com/sirupsen/logrus"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"
)

const (
	vendor    = "k8s.device-plugin.nvidia.com"
	csvFolder = "/etc/nvidia-container-runtime/host-files-for-container.d"
)

type options struct {
	specDir, host                         string
	driverRoot                            string // where this process sees the driver's files
	targetDriverRoot, targetDevRoot       string // the same on the host
	strategy, mode                        string
	names, hookPath                       string
	features, disabledHooks, imexChannels list
	gdrcopy, gds, mofed                   bool
}

// list is a flag with values separated by commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }
func (l *list) Set(text string) error {
	if text != "" {
		*l = strings.Split(text, ",")
	}
	return nil
}

func main() {
	var o options
	flag.StringVar(&o.specDir, "cdi-spec-dir", "", "folder for the files")
	flag.StringVar(&o.host, "host-root", "/", "the machine's root")
	flag.StringVar(&o.driverRoot, "driver-root-ctr-path", "/", "the driver's root as seen here")
	flag.StringVar(&o.targetDriverRoot, "driver-root", "/", "the driver's root on the host")
	flag.StringVar(&o.targetDevRoot, "dev-root", "", "the root of /dev on the host")
	flag.StringVar(&o.strategy, "device-discovery-strategy", "nvml", "nvml or tegra")
	flag.StringVar(&o.mode, "mode", "auto", "of the generator; not an option of the plugin")
	flag.StringVar(&o.names, "device-id-strategy", "uuid", "uuid or index")
	flag.StringVar(&o.hookPath, "nvidia-cdi-hook-path", "/usr/bin/nvidia-ctk", "on the host")
	flag.Var(&o.features, "cdi-feature-flags", "")
	flag.Var(&o.disabledHooks, "cdi-disable-hooks", "")
	flag.Var(&o.imexChannels, "imex-channel-ids", "")
	flag.BoolVar(&o.gdrcopy, "gdrcopy-enabled", false, "")
	flag.BoolVar(&o.gds, "gds-enabled", false, "")
	flag.BoolVar(&o.mofed, "mofed-enabled", false, "")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "nvcdi:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.host != "/" {
		if err := enterMachine(o.host, o.driverRoot); err != nil {
			return err
		}
	}
	if o.targetDevRoot == "" {
		o.targetDevRoot = o.targetDriverRoot
	}
	generators, err := generatorsOf(o)
	if err != nil {
		return err
	}
	for class, generator := range generators {
		if err := write(o, generator); err != nil {
			return fmt.Errorf("%s: %w", class, err)
		}
	}
	return nil
}

// enterMachine puts the machine's kernel files where the generator looks for them.
func enterMachine(host, driverRoot string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	places := []string{"/sys", "/proc/driver"}
	if devRoot(driverRoot) == "/" {
		places = append(places, "/dev")
	}
	for _, place := range places {
		var err error
		if source := filepath.Join(host, place); exists(source) {
			err = syscall.Mount(source, place, "", syscall.MS_BIND, "")
		} else {
			err = syscall.Mount("tmpfs", place, "tmpfs", 0, "")
		}
		if err != nil {
			return fmt.Errorf("put the machine's %s in its place: %w", place, err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// devRoot is where the plugin takes device nodes from.
func devRoot(driverRoot string) string {
	if info, err := os.Stat(filepath.Join(driverRoot, "dev")); err == nil && info.IsDir() {
		return driverRoot
	}
	return "/"
}

// libraryIn finds NVML below the driver's root, else leaves it to the loader.
func libraryIn(root string) string {
	const name = "libnvidia-ml.so.1"
	for _, folder := range []string{"/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
		"/lib64"} {
		path := filepath.Join(root, folder, name)
		if exists(path) {
			return path
		}
	}
	return name
}

func generatorsOf(o options) (map[string]nvcdi.SpecGenerator, error) {
	logger := logrus.New()
	library := nvml.New(nvml.WithLibraryPath(libraryIn(o.driverRoot)))
	devices := device.New(library)
	platform := info.New(info.WithRoot(o.driverRoot), info.WithNvmlLib(library), info.WithDeviceLib(devices))
	namer, err := nvcdi.NewDeviceNamer(o.names)
	if err != nil {
		return nil, err
	}
	common := []nvcdi.Option{
		nvcdi.WithLogger(logger), nvcdi.WithVendor(vendor),
		nvcdi.WithNvmlLib(library), nvcdi.WithDeviceLib(devices), nvcdi.WithInfoLib(platform),
		nvcdi.WithDriverRoot(o.driverRoot), nvcdi.WithDevRoot(devRoot(o.driverRoot)),
		nvcdi.WithNVIDIACDIHookPath(o.hookPath),
		nvcdi.WithFeatureFlags(o.features...), nvcdi.WithDisabledHooks(o.disabledHooks...),
	}
	if o.strategy == "tegra" {
		var files []string
		for _, name := range []string{"devices.csv", "drivers.csv", "l4t.csv"} {
			files = append(files, filepath.Join(o.driverRoot, csvFolder, name))
		}
		common = append(common, nvcdi.WithCSVFiles(files))
	}
	with := func(more ...nvcdi.Option) []nvcdi.Option { return append(common[:len(common):len(common)], more...) }

	generators := map[string]nvcdi.SpecGenerator{}
	generators["gpu"], err = nvcdi.New(with(nvcdi.WithClass("gpu"), nvcdi.WithMode(o.mode),
		nvcdi.WithDeviceNamers(namer))...)
	if err != nil {
		return nil, err
	}
	for class, enabled := range map[string]bool{"gdrcopy": o.gdrcopy, "gds": o.gds, "mofed": o.mofed} {
		if !enabled {
			continue
		}
		if generators[class], err = nvcdi.New(with(nvcdi.WithMode(class))...); err != nil {
			return nil, err
		}
	}
	if len(o.imexChannels) > 0 {
		generators["imex-channel"] = channels{o}
	}
	return generators, nil
}

// channels describes IMEX channels as the plugin does, which uses the generator's file format and
// transforms for them, and not its mode for IMEX.
type channels struct{ options }

func (c channels) GetSpec(...string) (spec.Interface, error) {
	var devices []specs.Device
	for _, id := range c.imexChannels {
		path := "/dev/nvidia-caps-imex-channels/channel" + id
		node := &specs.DeviceNode{Path: path, HostPath: filepath.Join(devRoot(c.driverRoot), path)}
		devices = append(devices, specs.Device{
			Name:           id,
			ContainerEdits: specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{node}},
		})
	}
	return spec.New(spec.WithVendor(vendor), spec.WithClass("imex-channel"), spec.WithDeviceSpecs(devices))
}

// write moves the paths from where this process sees them to where the host has them.
func write(o options, generator nvcdi.SpecGenerator) error {
	generated, err := generator.GetSpec()
	if err != nil {
		return err
	}
	moves := []transform.Transformer{move(o.driverRoot, o.targetDriverRoot)}
	if root := devRoot(o.driverRoot); root != o.driverRoot {
		moves = append(moves, move(devOf(root), devOf(o.targetDevRoot)))
	}
	if err := transform.Merge(moves...).Transform(generated.Raw()); err != nil {
		return fmt.Errorf("move the roots: %w", err)
	}
	name, err := cdi.GenerateNameForSpec(generated.Raw())
	if err != nil {
		return err
	}
	err = generated.Save(filepath.Join(o.specDir, name+".json"))
	// The plugin drops such a class.
	if err != nil && strings.Contains(err.Error(), "empty device edits") {
		return nil
	}
	return err
}

func move(from, to string) transform.Transformer {
	return transformroot.New(transformroot.WithRoot(from), transformroot.WithTargetRoot(to),
		transformroot.WithRelativeTo("host"))
}

func devOf(root string) string {
	return filepath.Join(strings.TrimSuffix(filepath.Clean(root), "/dev"), "/dev")
}
