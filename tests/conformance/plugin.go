package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// plugin is a running device plugin program.
type plugin struct {
	n       *node
	cmd     *exec.Cmd
	args    []string
	logFile string
	ended   chan struct{}
}

// startPlugin starts the plugin as its DaemonSet does, on the simulated machine. Arguments of the
// form NAME=value go to its environment.
func (n *node) startPlugin(args ...string) *plugin {
	n.t.Helper()
	p := &plugin{n: n, args: args, ended: make(chan struct{})}
	p.logFile = filepath.Join(n.dir, fmt.Sprintf("plugin-%d.log", len(n.plugins)+1))
	log, err := os.Create(p.logFile)
	must(n.t, err)
	defer log.Close()

	root := n.driverRoot()
	p.cmd = exec.Command(program("NDP_BIN", "ndp"), "device-plugin",
		"--driver-root-ctr-path", root, "--host-root", root,
		"--kubelet-socket", filepath.Join(pluginDir, "kubelet.sock"))
	p.cmd.Env = os.Environ()
	for _, arg := range args {
		if arg[0] == '-' {
			p.cmd.Args = append(p.cmd.Args, arg)
		} else {
			p.cmd.Env = append(p.cmd.Env, arg)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	must(n.t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	n.plugins = append(n.plugins, p)
	return p
}

func (p *plugin) signal(s syscall.Signal) {
	p.n.t.Helper()
	must(p.n.t, p.cmd.Process.Signal(s))
}

// stop ends the plugin the way a pod is stopped, and checks that it ends as it should.
func (p *plugin) stop() {
	p.n.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.n.t.Fatalf("the plugin still runs %v after SIGTERM", patience)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.n.t.Fatalf("the plugin ended with %v after SIGTERM, want exit status 0", p.cmd.ProcessState)
	}
}

// kill ends the plugin as the kernel's out-of-memory killer would.
func (p *plugin) kill() {
	p.n.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *plugin) mustRun() {
	p.n.t.Helper()
	select {
	case <-p.ended:
		p.n.t.Fatalf("the plugin has ended: %v", p.cmd.ProcessState)
	default:
	}
}

func (p *plugin) state() string {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.String()
	default:
		return "running"
	}
}
