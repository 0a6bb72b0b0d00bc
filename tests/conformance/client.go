package conformance

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// client asks a plugin directly, for what the kubelet would not tell.
type client struct {
	t   *testing.T
	api pluginapi.DevicePluginClient
}

func (n *node) dial(socket string) client {
	n.t.Helper()
	connection, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(n.t, err)
	n.t.Cleanup(func() { connection.Close() })
	return client{n.t, pluginapi.NewDevicePluginClient(connection)}
}

// preferred returns the set, sorted, that the plugin would choose.
func (c client) preferred(available, mustInclude []string, size int) []string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := c.api.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs:   available,
			MustIncludeDeviceIDs: mustInclude,
			AllocationSize:       int32(size),
		}},
	})
	must(c.t, err)
	if len(answer.ContainerResponses) != 1 {
		c.t.Fatalf("one preferred set was asked for, the answer has %d", len(answer.ContainerResponses))
	}
	ids := slices.Clone(answer.ContainerResponses[0].DeviceIDs)
	slices.Sort(ids)
	return ids
}

// sendBytes writes text to a socket and waits for the other side to close, at most a second.
func (n *node) sendBytes(socket, text string) {
	n.t.Helper()
	connection, err := net.Dial("unix", socket)
	must(n.t, err)
	defer connection.Close()
	must(n.t, connection.SetDeadline(time.Now().Add(time.Second)))
	if _, err := connection.Write([]byte(text)); err != nil {
		return // closed at once: fine as well
	}
	buffer := make([]byte, 4096)
	for {
		if _, err := connection.Read(buffer); err != nil {
			return
		}
	}
}
