package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// served is a subject beside a kubelet of its own.
type served struct {
	kubelet *kubelet
	program *running
	first   list // of the resource that was waited for, with all devices
}

// forget removes what a program remembers of an earlier one's faults.
func forget() error {
	entries, err := os.ReadDir(pluginDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != "kubelet.sock" {
			if err := os.RemoveAll(filepath.Join(pluginDir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts a subject beside a fresh kubelet; it has not registered yet.
func begin(m machine, s subject, args ...string) (*served, error) {
	if err := forget(); err != nil {
		return nil, err
	}
	k, err := startKubelet()
	if err != nil {
		return nil, err
	}
	r, err := s.start(m, args...)
	if err != nil {
		k.stop()
		return nil, err
	}
	return &served{kubelet: k, program: r}, nil
}

// serve also waits until so many devices of a resource are listed as healthy.
func serve(ctx context.Context, m machine, s subject, resource string, healthy int,
	args ...string) (*served, error) {
	v, err := begin(m, s, args...)
	if err != nil {
		return nil, err
	}
	// A program that ends at once need not be waited for.
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-v.program.ended
		cancel(errors.New("the program has ended"))
	}()
	if v.first, err = v.kubelet.waitHealthy(alive, resource, healthy); err != nil {
		err = v.explain(err)
		v.end()
		return nil, err
	}
	return v, nil
}

func (v *served) end() {
	_, _ = v.program.stop()
	v.kubelet.stop()
}

// explain adds what the program said last.
func (v *served) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w%s", err, v.program.lastWords())
}

func (v *served) pid() int { return v.program.cmd.Process.Pid }

func (v *served) allocate(ctx context.Context, resource string, ids []string) error {
	return allocateOf(ctx, v.kubelet.plugin(resource), ids)
}

func allocateOf(ctx context.Context, plugin pluginapi.DevicePluginClient, ids []string) error {
	_, err := plugin.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	return err
}

func (v *served) prefer(ctx context.Context, resource string, available []string, size int) error {
	_, err := v.kubelet.plugin(resource).GetPreferredAllocation(ctx,
		&pluginapi.PreferredAllocationRequest{
			ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
				AvailableDeviceIDs: available, AllocationSize: int32(size),
			}},
		})
	return err
}

// options is the request that does nothing.
func (v *served) options(ctx context.Context, resource string) error {
	_, err := v.kubelet.plugin(resource).GetDevicePluginOptions(ctx, &pluginapi.Empty{})
	return err
}

// writeConfig makes a configuration file, which all subjects read alike.
func (m machine) writeConfig(name, text string) (string, error) {
	path := filepath.Join(m.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}
