package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// profile is the text of a simulated machine, as far as NVML shows it (sim/profiles).
type profile struct {
	Platform     string
	Driver       string
	Fabric       *struct{ Clique uint32 }
	SwitchGroups []int
	Links        struct {
		NVSwitch int
		Pairs    [][3]int // GPU, GPU, number of links
	}
	GPUs []profileGPUs
}

// profileGPUs is one kind of GPU: an entry of PCI and NUMA per GPU.
type profileGPUs struct {
	Name              string
	MemoryMiB         uint64
	ComputeCapability string
	Architecture      uint32
	PCIID             uint32
	SubsystemID       uint32
	MIG               string
	PCI               []string
	NUMA              []int64
}

// profileGPU is one GPU of a profile.
type profileGPU struct {
	*profileGPUs
	busID string // as NVML writes it
	numa  int64
}

// allProfiles asks ndp-sim which machines it can play.
func allProfiles(t *testing.T) []string {
	t.Helper()
	output, err := exec.Command(program("NDP_SIM_BIN", "ndp-sim"), "profiles").Output()
	must(t, err)
	var names []string
	for line := range strings.Lines(string(output)) {
		names = append(names, strings.Fields(line)[0])
	}
	if len(names) == 0 {
		t.Fatal("ndp-sim profiles names no profile")
	}
	return names
}

func readProfile(t *testing.T, name string) profile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "sim", "profiles", name+".yaml"))
	must(t, err)
	var p profile
	must(t, yaml.Unmarshal(text, &p))
	return p
}

// gpus lists the GPUs in the order in which they are written, which is that of the machine.
func (p *profile) gpus() []profileGPU {
	var all []profileGPU
	for i := range p.GPUs {
		kind := &p.GPUs[i]
		for j, address := range kind.PCI {
			domain := "0000"
			if strings.Count(address, ":") == 2 {
				domain, address, _ = strings.Cut(address, ":")
			}
			gpu := profileGPU{kind, fmt.Sprintf("0000%s:%s.0", domain, address), -1}
			if j < len(kind.NUMA) {
				gpu.numa = kind.NUMA[j]
			}
			all = append(all, gpu)
		}
	}
	return all
}

// linksBetween is the number of direct links between two GPUs.
func (p *profile) linksBetween(a, b int) int {
	for _, pair := range p.Links.Pairs {
		if pair[0] == a && pair[1] == b || pair[0] == b && pair[1] == a {
			return pair[2]
		}
	}
	return 0
}

// simStatus is what `ndp-sim status` says of each GPU.
type simStatus struct {
	UUID  string
	Minor int
	Index int
	MIG   []struct {
		Index  int
		UUID   string
		GI, CI int
	}
}

func (n *node) simStatus() []simStatus {
	n.t.Helper()
	var status struct{ GPUs []simStatus }
	must(n.t, json.Unmarshal([]byte(n.sim("status", "--json")), &status))
	return status.GPUs
}
