package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

const (
	cdiFolder = "/var/run/cdi"
	cdiGPU    = "k8s.device-plugin.nvidia.com/gpu="
)

// cdiArgs lets a spec name files that exist: the driver root on this host.
func (n *node) cdiArgs(strategies string) []string {
	return []string{"--device-list-strategy=" + strategies, "--driver-root=" + n.driverRoot()}
}

func qualified(ids []string) []string {
	names := []string{}
	for _, id := range ids {
		names = append(names, cdiGPU+id)
	}
	return names
}

// loadSpecs reads every generated file with the CDI project's own package; none may be refused, and
// all must pass the published schema.
func loadSpecs(t *testing.T) *cdi.Cache {
	t.Helper()
	return loadSpecsOf(t, cdiFolder)
}

func loadSpecsOf(t *testing.T, folder string) *cdi.Cache {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	must(t, err)
	checkSchema(t, files...)
	cache, err := cdi.NewCache(cdi.WithSpecDirs(folder), cdi.WithAutoRefresh(false))
	must(t, err)
	for path, errs := range cache.GetErrors() {
		t.Errorf("%s is not a valid CDI file: %v", path, errs)
	}
	if len(cache.ListDevices()) == 0 {
		t.Fatalf("no CDI device in %s", folder)
	}
	return cache
}

// checkSchema asks cdischema, which run.sh has built.
func checkSchema(t *testing.T, files ...string) {
	t.Helper()
	program := os.Getenv("NDP_CDI_SCHEMA")
	if program == "" {
		t.Fatal("NDP_CDI_SCHEMA does not name the program cdischema: run.sh builds it")
	}
	if out, err := exec.Command(program, files...).CombinedOutput(); err != nil {
		t.Errorf("the published schema refuses a file: %v\n%s", err, out)
	}
}

// inject does what a container runtime does with the names that it got.
func inject(t *testing.T, names []string) *oci.Spec {
	t.Helper()
	spec := emptyContainer()
	unresolved, err := loadSpecs(t).InjectDevices(spec, names...)
	if err != nil || len(unresolved) != 0 {
		t.Fatalf("inject %q: %v, unresolved: %q", names, err, unresolved)
	}
	return spec
}

// checkContainer looks at what the devices became in the container's specification.
func checkContainer(t *testing.T, n *node, spec *oci.Spec, gpus []gpu) {
	t.Helper()
	var nodes []string
	for _, device := range spec.Linux.Devices {
		if strings.HasPrefix(device.Path, "/dev/nvidia") {
			nodes = append(nodes, device.Path)
		}
	}
	want := []string{"/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl"}
	for _, gpu := range gpus {
		want = append(want, fmt.Sprintf("/dev/nvidia%d", gpu.minor))
	}
	slices.Sort(nodes)
	slices.Sort(want)
	if !slices.Equal(nodes, want) {
		t.Errorf("device nodes in the container are\n%q, want\n%q", nodes, want)
	}
	libraries := 0
	for _, mount := range spec.Mounts {
		if _, err := os.Stat(mount.Source); err != nil {
			t.Errorf("mount of a file that is not there: %v", err)
		}
		// Vulkan's files are looked for in /etc by the loader, wherever the driver keeps them.
		inContainer := strings.TrimPrefix(mount.Source, n.driverRoot())
		if rest, found := strings.CutPrefix(inContainer, "/usr/share/vulkan/"); found {
			inContainer = "/etc/vulkan/" + rest
		}
		if !strings.HasPrefix(mount.Source, n.driverRoot()) || inContainer != mount.Destination {
			t.Errorf("%s is mounted at %s, want the same place as in the driver root", mount.Source,
				mount.Destination)
		}
		if strings.HasPrefix(filepath.Base(mount.Destination), "libcuda.so.") {
			libraries++
		}
	}
	if libraries != 1 {
		t.Errorf("libcuda is mounted %d times, want once", libraries)
	}
	if !slices.Contains(spec.Process.Env, "NVIDIA_VISIBLE_DEVICES=void") {
		t.Errorf("environment %q does not keep the legacy hook away", spec.Process.Env)
	}
	var hooks []string
	for _, hook := range spec.Hooks.CreateContainer {
		hooks = append(hooks, strings.Join(hook.Args, " "))
	}
	for _, wanted := range []string{"create-symlinks", "update-ldcache"} {
		if !slices.ContainsFunc(hooks, func(hook string) bool { return strings.Contains(hook, wanted) }) {
			t.Errorf("no %s hook among %q", wanted, hooks)
		}
	}
}

// The kubelet hands the names on as CDI devices, unchanged, and they resolve.
func TestCDIDevicesThroughTheRuntimeInterface(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin(n.cdiArgs("cdi-cri")...)
		k.waitFor(gpuResource, 8, 8)
		for _, size := range requestSizes {
			pod := k.mustAdmit(newPod(fmt.Sprintf("with-%d", size), gpuResource, size))
			gpus := n.gpusOf(k.devicesOf(pod, gpuResource))
			options := k.options(pod)
			var names []string
			for _, device := range options.CDIDevices {
				names = append(names, device.Name)
			}
			if want := qualified(uuids(gpus)); !slices.Equal(names, want) {
				t.Errorf("CDI devices are\n%q, want\n%q", names, want)
			}
			if len(options.Envs)+len(options.Mounts)+len(options.Devices)+len(options.Annotations) != 0 {
				t.Errorf("cdi-cri alone handed out more: %+v", options)
			}
			checkContainer(t, n, inject(t, names), gpus)
			k.end(pod)
		}
	})
}

func TestCDIDevicesThroughAnnotations(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin(n.cdiArgs("cdi-annotations")...)
		k.waitFor(gpuResource, 8, 8)
		keys := map[string]bool{}
		for i := range 2 {
			pod := k.mustAdmit(newPod(fmt.Sprintf("pod-%d", i), gpuResource, 3))
			gpus := n.gpusOf(k.devicesOf(pod, gpuResource))
			options := k.options(pod)
			if len(options.Annotations) != 1 || len(options.CDIDevices) != 0 {
				t.Fatalf("want one annotation and nothing else, got %+v", options)
			}
			annotation := options.Annotations[0]
			if !strings.HasPrefix(annotation.Name, "cdi.k8s.io/nvidia-device-plugin_") {
				t.Errorf("annotation key %s", annotation.Name)
			}
			if keys[annotation.Name] {
				t.Errorf("two containers have the annotation key %s", annotation.Name)
			}
			keys[annotation.Name] = true
			// What a runtime that reads annotations makes of it.
			_, names, err := cdi.ParseAnnotations(map[string]string{annotation.Name: annotation.Value})
			must(t, err)
			if want := qualified(uuids(gpus)); !slices.Equal(names, want) {
				t.Errorf("the annotation names\n%q, want\n%q", names, want)
			}
			checkContainer(t, n, inject(t, names), gpus)
		}
	})
}

// All strategies at once, so that one node serves runtimes of every kind.
func TestEveryStrategyAtOnce(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin(append(n.cdiArgs("envvar,volume-mounts,cdi-annotations,cdi-cri"),
			"--pass-device-specs")...)
		k.waitFor(gpuResource, 8, 8)
		pod := k.mustAdmit(newPod("pod", gpuResource, 2))
		options := k.options(pod)
		wantVisibleDevices(t, options, volumeMountFolder)
		// Two GPUs, and the four control nodes.
		if len(options.Mounts) != 2 || len(options.Devices) != 6 || len(options.Annotations) != 1 ||
			len(options.CDIDevices) != 2 {
			t.Errorf("want 2 mounts, 6 device nodes, 1 annotation and 2 CDI devices, got %+v", options)
		}
	})
}

// Each MIG device and each replica resolves too.
func TestCDIDevicesOfSlicesAndReplicas(t *testing.T) {
	onNode(t, "dgx-a100", func(n *node) {
		n.partition(0, "3g.20gb*2")
		k := n.startKubelet()
		n.startPluginWithConfig(v1Config("sharing: {timeSlicing: {resources: "+
			"[{name: nvidia.com/mig-3g.20gb, replicas: 3}]}}"),
			append(n.cdiArgs("cdi-cri"), "--mig-strategy=mixed")...)
		const slices = "nvidia.com/mig-3g.20gb"
		k.waitFor(slices, 6, 6)
		pod := k.mustAdmit(newPod("all", slices, 6))
		var names []string
		for _, device := range k.options(pod).CDIDevices {
			names = append(names, device.Name)
		}
		if want := qualified(n.gpus()[0].migDevices); fmt.Sprint(names) != fmt.Sprint(want) {
			t.Errorf("CDI devices are\n%q, want\n%q", names, want)
		}
		spec := inject(t, names)
		caps := 0
		for _, device := range spec.Linux.Devices {
			if strings.HasPrefix(device.Path, "/dev/nvidia-caps/nvidia-cap") {
				caps++
			}
		}
		if caps != 4 {
			t.Errorf("two MIG devices brought %d cap nodes, want 4", caps)
		}
	})
}

// Ids are in the spec before a list offers them, and old ones that pods hold stay.
func TestCDISpecFollowsARepartition(t *testing.T) {
	const small, half = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
	onNode(t, "dgx-a100", func(n *node) {
		n.partition(0, "1g.5gb*7")
		k := n.startKubelet()
		n.startPlugin(append(n.cdiArgs("cdi-cri"), "--mig-strategy=mixed", "--rescan-interval=100ms")...)
		k.waitFor(small, 7, 7)
		n.sim("mig", "--gpu", "0", "--profiles", "3g.20gb*2")
		k.waitFor(half, 2, 2)
		pod := k.mustAdmit(newPod("half", half, 2))
		var names []string
		for _, device := range k.options(pod).CDIDevices {
			names = append(names, device.Name)
		}
		inject(t, names)
	})
}

func (n *node) gpusOf(ids []string) []gpu {
	n.t.Helper()
	var held []gpu
	for _, gpu := range n.gpus() {
		if slices.Contains(ids, gpu.uuid) {
			held = append(held, gpu)
		}
	}
	return held
}
