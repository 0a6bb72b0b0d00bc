package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const pluginDir = "/var/lib/kubelet/device-plugins"

// kubelet does what a kubelet does with plugins and nothing more: it cleans its folder, serves
// Registration, dials back from within Register and reads the lists.
type kubelet struct {
	server  *grpc.Server
	started time.Time // when kubelet.sock was there

	registered chan time.Time
	lists      chan list
	connection *grpc.ClientConn
	plugin     pluginapi.DevicePluginClient
	connected  chan struct{}

	pluginapi.UnimplementedRegistrationServer
}

type list struct {
	at      time.Time
	healthy int
	ids     []string
}

// startKubelet removes every socket in the folder first, as kubelets do.
func startKubelet() (*kubelet, error) {
	if err := os.MkdirAll(pluginDir, 0o750); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(pluginDir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket != 0 {
			if err := os.Remove(filepath.Join(pluginDir, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	k := &kubelet{
		server:     grpc.NewServer(),
		registered: make(chan time.Time, 100),
		lists:      make(chan list, 1000),
		connected:  make(chan struct{}, 100),
	}
	pluginapi.RegisterRegistrationServer(k.server, k)
	listener, err := net.Listen("unix", filepath.Join(pluginDir, "kubelet.sock"))
	if err != nil {
		return nil, err
	}
	k.started = time.Now()
	go func() { _ = k.server.Serve(listener) }()
	return k, nil
}

// stop closes everything; the socket file goes with the listener.
func (k *kubelet) stop() {
	if k.connection != nil {
		k.connection.Close()
	}
	k.server.Stop()
}

func (k *kubelet) Register(_ context.Context,
	request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.registered <- time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, err := grpc.NewClient("unix://"+filepath.Join(pluginDir, request.Endpoint),
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	plugin := pluginapi.NewDevicePluginClient(connection)
	// The kubelet waits for the connection for ten seconds, within the call.
	if _, err := plugin.GetDevicePluginOptions(ctx, &pluginapi.Empty{},
		grpc.WaitForReady(true)); err != nil {
		connection.Close()
		return nil, fmt.Errorf("dial %s: %w", request.Endpoint, err)
	}
	k.connection, k.plugin = connection, plugin
	k.connected <- struct{}{}
	go k.read(plugin)
	return &pluginapi.Empty{}, nil
}

func (k *kubelet) read(plugin pluginapi.DevicePluginClient) {
	stream, err := plugin.ListAndWatch(context.Background(), &pluginapi.Empty{})
	if err != nil {
		return
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return
		}
		l := list{at: time.Now()}
		for _, device := range answer.Devices {
			l.ids = append(l.ids, device.ID)
			if device.Health == pluginapi.Healthy {
				l.healthy++
			}
		}
		k.lists <- l
	}
}

// waitRegistered returns when the next Register call arrived.
func (k *kubelet) waitRegistered(limit time.Duration) (time.Time, error) {
	select {
	case at := <-k.registered:
		return at, nil
	case <-time.After(limit):
		return time.Time{}, fmt.Errorf("no registration within %v", limit)
	}
}

// waitHealthy returns the first list with so many healthy devices.
func (k *kubelet) waitHealthy(count int, limit time.Duration) (list, error) {
	timeout := time.After(limit)
	var seen []string
	for {
		select {
		case l := <-k.lists:
			if l.healthy == count {
				return l, nil
			}
			seen = append(seen, fmt.Sprint(l.healthy))
		case <-timeout:
			return list{}, fmt.Errorf("no list with %d healthy devices within %v; lists had %s", count,
				limit, strings.Join(seen, ", "))
		}
	}
}
