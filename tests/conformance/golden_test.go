package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
)

type goldenNode struct {
	Path  string `json:"path"`
	Type  string `json:"type,omitempty"`
	Major int64  `json:"major,omitempty"`
}

type goldenEdits struct {
	Env    []string     `json:"env"`
	Nodes  []goldenNode `json:"deviceNodes"`
	Mounts []struct {
		ContainerPath string `json:"containerPath"`
	} `json:"mounts"`
	Hooks []struct {
		Path string `json:"path"`
	} `json:"hooks"`
}

type goldenSpec struct {
	Kind    string `json:"kind"`
	Devices []struct {
		Name  string      `json:"name"`
		Edits goldenEdits `json:"containerEdits"`
	} `json:"devices"`
	Edits goldenEdits `json:"containerEdits"`
}

// A golden machine's nodes are not on this host, so each is said to be a character device with a
// number: without that the reader looks at the host's.
func withNumbers(t *testing.T, text []byte) []byte {
	t.Helper()
	var document map[string]any
	must(t, json.Unmarshal(text, &document))
	number := func(edits any) {
		nodes, _ := edits.(map[string]any)["deviceNodes"].([]any)
		for _, node := range nodes {
			node := node.(map[string]any)
			node["type"] = "c"
			if _, found := node["major"]; !found {
				node["major"] = 1
			}
		}
	}
	number(document["containerEdits"])
	for _, device := range document["devices"].([]any) {
		number(device.(map[string]any)["containerEdits"])
	}
	out, err := json.Marshal(document)
	must(t, err)
	return out
}

// Every golden file passes the published schema, is taken by the CDI project's reader, and each of
// its devices, injected, gives the container the nodes, mounts, hooks and variables of the file.
func TestGoldenSpecsAreTakenByIndependentReaders(t *testing.T) {
	files, err := filepath.Glob("../golden/cdi/*.json")
	must(t, err)
	if len(files) < 10 {
		t.Fatalf("only %d golden files", len(files))
	}
	checkSchema(t, files...)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			var golden goldenSpec
			must(t, json.Unmarshal(text, &golden))
			folder := t.TempDir()
			must(t, os.WriteFile(filepath.Join(folder, "golden.json"), withNumbers(t, text), 0o644))
			cache := loadSpecsOf(t, folder)
			for _, device := range golden.Devices {
				spec := &oci.Spec{Process: &oci.Process{}, Linux: &oci.Linux{}, Root: &oci.Root{Path: "/r"}}
				name := golden.Kind + "=" + device.Name
				if unresolved, err := cache.InjectDevices(spec, name); err != nil || len(unresolved) != 0 {
					t.Fatalf("inject %s: %v, unresolved %q", name, err, unresolved)
				}
				hooks := 0
				if spec.Hooks != nil {
					hooks = len(spec.Hooks.CreateContainer)
				}
				for _, count := range []struct {
					what      string
					got, want int
				}{
					{"device nodes", len(spec.Linux.Devices), len(device.Edits.Nodes) + len(golden.Edits.Nodes)},
					{"mounts", len(spec.Mounts), len(device.Edits.Mounts) + len(golden.Edits.Mounts)},
					{"hooks", hooks, len(device.Edits.Hooks) + len(golden.Edits.Hooks)},
					{"variables", len(spec.Process.Env), len(device.Edits.Env) + len(golden.Edits.Env)},
				} {
					if count.got != count.want {
						t.Errorf("%s gives %d %s, want %d", name, count.got, count.what, count.want)
					}
				}
			}
		})
	}
}
