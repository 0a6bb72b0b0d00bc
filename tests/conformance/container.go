package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
)

// container is what a container's specification gives it: all that CDI can put there, in lines that
// can be compared. Sorted, apart from what the order matters for.
type container struct {
	Nodes  []string // the node in the container, and what the control group lets it do with it
	Mounts []string
	Hooks  []string // in order
	Env    []string // in order
	Groups []uint32
	Other  string // of the specification, what is none of these
}

func (c *container) sort() {
	slices.Sort(c.Nodes)
	slices.Sort(c.Mounts)
	slices.Sort(c.Groups)
}

func emptyContainer() *oci.Spec {
	return &oci.Spec{Process: &oci.Process{}, Linux: &oci.Linux{}, Root: &oci.Root{Path: "/rootfs"}}
}

func nodeLine(path, kind string, major, minor int64, mode, gid uint32, access string) string {
	return fmt.Sprintf("%s %s %d:%d mode %#o gid %d: %s", path, kind, major, minor, mode, gid, access)
}

func mountLine(source, destination, kind string, options []string) string {
	return fmt.Sprintf("%s at %s type %q %q", source, destination, kind, options)
}

func hookLine(when, path string, args, env []string) string {
	return fmt.Sprintf("%s %s %q %q", when, path, args, env)
}

// containerOf reads a specification. It takes out what it has read: the rest must be empty.
func containerOf(t *testing.T, spec *oci.Spec) container {
	t.Helper()
	var c container
	access := map[string]string{}
	if spec.Linux.Resources != nil {
		for _, rule := range spec.Linux.Resources.Devices {
			if !rule.Allow || rule.Major == nil || rule.Minor == nil {
				t.Errorf("a rule of the control group that is none for one device: %+v", rule)
				continue
			}
			access[fmt.Sprint(rule.Type, *rule.Major, ":", *rule.Minor)] = rule.Access
		}
		spec.Linux.Resources = nil
	}
	for _, node := range spec.Linux.Devices {
		var mode, gid uint32
		if node.FileMode != nil {
			mode = uint32(*node.FileMode)
		}
		if node.GID != nil {
			gid = *node.GID
		}
		if node.UID != nil {
			t.Errorf("%s belongs to user %d, want the container's", node.Path, *node.UID)
		}
		key := fmt.Sprint(node.Type, node.Major, ":", node.Minor)
		c.Nodes = append(c.Nodes,
			nodeLine(node.Path, node.Type, node.Major, node.Minor, mode, gid, access[key]))
	}
	for _, mount := range spec.Mounts {
		c.Mounts = append(c.Mounts,
			mountLine(mount.Source, mount.Destination, mount.Type, mount.Options))
	}
	if spec.Hooks != nil {
		for _, hook := range spec.Hooks.CreateContainer {
			c.Hooks = append(c.Hooks, hookLine("createContainer", hook.Path, hook.Args, hook.Env))
			if hook.Timeout != nil {
				t.Errorf("hook %q has a timeout", hook.Args)
			}
		}
		spec.Hooks.CreateContainer = nil
		if reflect.DeepEqual(spec.Hooks, &oci.Hooks{}) {
			spec.Hooks = nil
		}
	}
	c.Env, c.Groups = spec.Process.Env, spec.Process.User.AdditionalGids
	c.sort()

	spec.Linux.Devices, spec.Mounts, spec.Process.Env = nil, nil, nil
	spec.Process.User.AdditionalGids = nil
	rest, err := json.Marshal(spec)
	must(t, err)
	c.Other = string(rest)
	return c
}

// nothing is what is left of an empty container's specification.
func nothing(t *testing.T) string {
	t.Helper()
	return containerOf(t, emptyContainer()).Other
}

func (c container) check(t *testing.T, what string, want container) {
	t.Helper()
	ours, err := json.Marshal(c)
	must(t, err)
	wanted, err := json.Marshal(want)
	must(t, err)
	for _, line := range differing(wanted, ours) {
		t.Errorf("%s (-: missing, +: too much): %s", what, line)
	}
}
