//go:build !kubelet134

package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// furnish adds files to a driver root that the simulated driver lacks: each place and name that the
// generator looks for.
func furnish(t *testing.T, root string) {
	t.Helper()
	version := driverVersion(t, root)
	libraries := "usr/lib/x86_64-linux-gnu/"
	var files []string
	for _, name := range []string{"libGL.so.1.7.0", "libEGL.so.1.1.0", "libOpenCL.so.1.0.0",
		"libGLX.so.0.0.0", "libGLdispatch.so.0.0.0", "libnvidia-api.so.1", "libnvidia-nvvm70.so.4",
		"libnvidia-egl-wayland2.so.1.0.1", "libnvidia-egl-xcb.so.1.0.3",
		"libnvidia-vulkan-producer.so." + version, "nvidia/xorg/nvidia_drv.so",
		"nvidia/xorg/libglxserver_nvidia.so." + version, "vdpau/not-a-lib.so." + version,
		".libhidden.so." + version, "nvidia/current/libnvidia-elsewhere.so." + version} {
		files = append(files, libraries+name)
	}
	files = append(files, "usr/lib64/libnvidia-second.so."+version,
		"usr/share/egl/egl_external_platform.d/09_nvidia_wayland2.json",
		"usr/share/egl/egl_external_platform.d/20_nvidia_xcb.json",
		"usr/share/X11/xorg.conf.d/10-nvidia.conf",
		"usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf",
		"usr/share/vulkan/icd.d/nvidia_layers.json", "usr/share/vulkan/icd.d/nvidia_icd.x86_64.json",
		"usr/local/share/nvidia/nvoptix.bin", "etc/glvnd/egl_vendor.d/10_nvidia.json",
		"etc/vulkan/icd.d/nvidia_icd.json", "run/nvidia-fabricmanager/socket",
		"usr/bin/nvidia-xconfig", "usr/local/bin/nvidia-smi", "usr/sbin/nvidia-imex",
		"lib/firmware/updates/nvidia/"+version+"/gsp_new.bin",
		"opt/firmware/nvidia/"+version+"/gsp_custom.bin")
	for _, file := range files {
		path := filepath.Join(root, file)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("not a library\n"), 0o755))
	}
	for link, target := range map[string]string{
		"libGL.so": "libGL.so.1.7.0", "libEGL.so": "libEGL.so.1.1.0", "libOpenCL.so": "libOpenCL.so.1.0.0",
		"libnvidia-api.so": "libnvidia-api.so.1",
	} {
		must(t, os.Symlink(target, filepath.Join(root, libraries, link)))
	}
	// One that is a library, by whose SONAME the link beside it goes.
	opencl, err := os.ReadFile(filepath.Join(root, libraries, "libnvidia-opencl.so."+version))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(root, libraries, "libGLX_nvidia_next.so."+version), opencl, 0o755))
	parameters := filepath.Join(root, "sys/module/firmware_class/parameters")
	must(t, os.MkdirAll(parameters, 0o755))
	must(t, os.WriteFile(filepath.Join(parameters, "path"), []byte("/opt/firmware\n"), 0o644))
}

func driverVersion(t *testing.T, root string) string {
	t.Helper()
	hits, err := filepath.Glob(filepath.Join(root, "usr/lib/x86_64-linux-gnu/libcuda.so.*.*"))
	must(t, err)
	if len(hits) != 1 {
		t.Fatalf("want one libcuda, found %q", hits)
	}
	_, version, _ := strings.Cut(hits[0], "libcuda.so.")
	return version
}
