package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const pluginDir = "/var/lib/kubelet/device-plugins"

// dialLimit is how long a kubelet waits for the connection, within Register.
const dialLimit = 10 * time.Second

// kubelet does what a kubelet does with plugins and nothing more: it cleans its folder, serves
// Registration, dials back from within Register and reads the lists.
type kubelet struct {
	server  *grpc.Server
	started time.Time // when kubelet.sock was there
	ended   context.Context
	end     context.CancelFunc

	registered chan time.Time
	lists      chan list

	mutex       sync.Mutex
	connections []*grpc.ClientConn
	plugins     map[string]pluginapi.DevicePluginClient // by resource

	pluginapi.UnimplementedRegistrationServer
}

type list struct {
	resource string
	at       time.Time
	healthy  int
	ids      []string
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
		registered: make(chan time.Time, 1000),
		lists:      make(chan list, 1000),
		plugins:    map[string]pluginapi.DevicePluginClient{},
	}
	k.ended, k.end = context.WithCancel(context.Background())
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
	k.end()
	k.server.Stop()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, connection := range k.connections {
		connection.Close()
	}
}

func (k *kubelet) Register(_ context.Context,
	request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.registered <- time.Now()
	ctx, cancel := context.WithTimeout(k.ended, dialLimit)
	defer cancel()
	connection, err := grpc.NewClient("unix://"+filepath.Join(pluginDir, request.Endpoint),
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	plugin := pluginapi.NewDevicePluginClient(connection)
	if _, err := plugin.GetDevicePluginOptions(ctx, &pluginapi.Empty{},
		grpc.WaitForReady(true)); err != nil {
		connection.Close()
		return nil, fmt.Errorf("dial %s: %w", request.Endpoint, err)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.connections = append(k.connections, connection)
	k.plugins[request.ResourceName] = plugin
	go k.read(request.ResourceName, plugin)
	return &pluginapi.Empty{}, nil
}

func (k *kubelet) read(resource string, plugin pluginapi.DevicePluginClient) {
	stream, err := plugin.ListAndWatch(k.ended, &pluginapi.Empty{})
	if err != nil {
		return
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return
		}
		l := list{resource: resource, at: time.Now()}
		for _, device := range answer.Devices {
			l.ids = append(l.ids, device.ID)
			if device.Health == pluginapi.Healthy {
				l.healthy++
			}
		}
		select {
		case k.lists <- l:
		case <-k.ended.Done():
			return
		}
	}
}

// plugin is the newest that has registered for a resource.
func (k *kubelet) plugin(resource string) pluginapi.DevicePluginClient {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.plugins[resource]
}

// waitRegistered returns when the next Register call arrived.
func (k *kubelet) waitRegistered(ctx context.Context) (time.Time, error) {
	select {
	case at := <-k.registered:
		return at, nil
	case <-time.After(patience):
		return time.Time{}, fmt.Errorf("no registration within %v", patience)
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// waitHealthy returns the first list of a resource with so many healthy devices.
func (k *kubelet) waitHealthy(ctx context.Context, resource string, count int) (list, error) {
	timeout := time.After(patience)
	seen := "there was none"
	for {
		select {
		case l := <-k.lists:
			if l.resource == resource && l.healthy == count {
				return l, nil
			}
			seen = fmt.Sprintf("the last had %d of %s", l.healthy, l.resource)
		case <-timeout:
			return list{}, fmt.Errorf("no list with %d healthy %s within %v; %s", count, resource,
				patience, seen)
		case <-ctx.Done():
			return list{}, fmt.Errorf("no list with %d healthy %s: %w; %s", count, resource,
				context.Cause(ctx), seen)
		}
	}
}
