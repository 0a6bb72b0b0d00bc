//go:build !kubelet134

package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// generate runs a program's `cdi generate` and returns the file that it writes.
func (c *comparison) generate(program, format string) string {
	c.t.Helper()
	path := filepath.Join(c.folder(), "nvidia."+format)
	output := path
	if c.chroot {
		output = c.fromRoot(path)
	}
	cmd := c.command(program, append([]string{"cdi", "generate", "--output=" + output}, c.args...))
	if messages, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v: %s", cmd, err, messages)
	}
	text, err := os.ReadFile(path)
	must(c.t, err)
	return string(text)
}

// readAny makes JSON of a file in either format, by the reader that runtimes have.
func (c *comparison) readAny(text string) []byte {
	c.t.Helper()
	spec, err := cdi.ParseSpec([]byte(text))
	must(c.t, err)
	return encode(c.t, spec)
}

// sameGenerated compares what `nvidia-ctk cdi generate` writes with what ours does.
func (c *comparison) sameGenerated(format string) {
	c.t.Helper()
	theirs := c.generate(program("NDP_NVIDIA_CTK", "nvidia-ctk"), format)
	ours := c.generate(program("NDP_BIN", "ndp"), format)
	for _, line := range differing(c.readAny(theirs), c.readAny(ours)) {
		c.t.Error(line)
	}
	// YAML has more than one way to say the same.
	if format == "json" && ours != theirs {
		c.t.Errorf("the text differs:\n%s\nNVIDIA's:\n%s", ours, theirs)
	}
}

// `ndp cdi generate` is what `nvidia-ctk cdi generate` is to people without a plugin.
func TestNVIDIAsGenerateCommand(t *testing.T) {
	onNode(t, "dgx-a100", func(n *node) {
		furnish(t, n.driverRoot())
		n.partition(0, "3g.20gb*2")
		for name, args := range map[string][]string{
			"index names":      {"--device-name-strategy=index"},
			"UUID names":       {"--device-name-strategy=uuid"},
			"type-index names": {"--device-name-strategy=type-index"},
			"no device all":    {"--device-name-strategy=index", "--no-all-device"},
			"another kind":     {"--device-name-strategy=uuid", "--vendor=example.com", "--class=card"},
			"hooks left out": {"--device-name-strategy=index", "--disable-hook=update-ldcache",
				"--disable-hook=create-symlinks"},
			"no hooks":     {"--device-name-strategy=index", "--disable-hook=all"},
			"another hook": {"--device-name-strategy=index", "--nvidia-cdi-hook-path=/opt/bin/nvidia-ctk"},
		} {
			for _, format := range []string{"json", "yaml"} {
				t.Run(name+" "+format, func(t *testing.T) {
					n.onPlainHost(t, args...).sameGenerated(format)
				})
			}
		}
	})
}
