package conformance

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// The golden files as this test reads them: every field that is in one of them, and no other, so that
// none goes unchecked.
type goldenEdits struct {
	Env   []string `json:"env"`
	Nodes []struct {
		Path        string `json:"path"`
		HostPath    string `json:"hostPath"`
		Type        string `json:"type"`
		Major       int64  `json:"major"`
		Minor       int64  `json:"minor"`
		FileMode    uint32 `json:"fileMode"`
		Permissions string `json:"permissions"`
		Gid         uint32 `json:"gid"`
	} `json:"deviceNodes"`
	Mounts []struct {
		HostPath      string   `json:"hostPath"`
		ContainerPath string   `json:"containerPath"`
		Options       []string `json:"options"`
	} `json:"mounts"`
	Hooks []struct {
		When string   `json:"hookName"`
		Path string   `json:"path"`
		Args []string `json:"args"`
		Env  []string `json:"env"`
	} `json:"hooks"`
	Groups []uint32 `json:"additionalGids"`
}

type goldenSpec struct {
	Version string `json:"cdiVersion"`
	Kind    string `json:"kind"`
	Devices []struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
		Edits       goldenEdits       `json:"containerEdits"`
	} `json:"devices"`
	Edits goldenEdits `json:"containerEdits"`
}

// addTo says what a container gets by these edits.
func (e goldenEdits) addTo(c *container) {
	for _, node := range e.Nodes {
		access := node.Permissions
		if access == "" {
			access = "rwm" // as the specification of CDI says
		}
		c.Nodes = append(c.Nodes,
			nodeLine(node.Path, node.Type, node.Major, node.Minor, node.FileMode, node.Gid, access))
	}
	for _, mount := range e.Mounts {
		c.Mounts = append(c.Mounts, mountLine(mount.HostPath, mount.ContainerPath, "", mount.Options))
	}
	for _, hook := range e.Hooks {
		c.Hooks = append(c.Hooks, hookLine(hook.When, hook.Path, hook.Args, hook.Env))
	}
	c.Env = append(c.Env, e.Env...)
	c.Groups = append(c.Groups, e.Groups...)
	c.sort()
	c.Groups = slices.Compact(c.Groups)
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
// its devices, injected, gives the container all that the file says, and nothing else.
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
			text = withNumbers(t, text)
			var golden goldenSpec
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			must(t, decoder.Decode(&golden))
			folder := t.TempDir()
			must(t, os.WriteFile(filepath.Join(folder, "golden.json"), text, 0o644))
			checkGolden(t, loadSpecsOf(t, folder), golden)
		})
	}
}

func checkGolden(t *testing.T, cache *cdi.Cache, golden goldenSpec) {
	t.Helper()
	all := container{Other: nothing(t)}
	golden.Edits.addTo(&all)
	together := emptyContainer()
	var names []string
	for _, device := range golden.Devices {
		name := golden.Kind + "=" + device.Name
		names = append(names, name)
		read := cache.GetDevice(name)
		if read == nil {
			t.Fatalf("%s is not resolved", name)
		}
		if !maps.Equal(read.Annotations, device.Annotations) {
			t.Errorf("%s has annotations %q, want %q", name, read.Annotations, device.Annotations)
		}
		if version := read.GetSpec().Version; version != golden.Version {
			t.Errorf("%s is of version %s, want %s", name, version, golden.Version)
		}
		want := container{Other: nothing(t)}
		golden.Edits.addTo(&want)
		device.Edits.addTo(&want)
		device.Edits.addTo(&all)
		spec := emptyContainer()
		if unresolved, err := cache.InjectDevices(spec, name); err != nil || len(unresolved) != 0 {
			t.Fatalf("inject %s: %v, unresolved %q", name, err, unresolved)
		}
		containerOf(t, spec).check(t, name, want)
	}
	if unresolved, err := cache.InjectDevices(together, names...); err != nil || len(unresolved) != 0 {
		t.Fatalf("inject %q: %v, unresolved %q", names, err, unresolved)
	}
	all.Nodes = slices.Compact(all.Nodes) // MIG devices of one GPU have its node in common
	containerOf(t, together).check(t, "all devices", all)
}
