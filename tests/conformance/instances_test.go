package conformance

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// gap watches the node's offer all the time and adds up for how long it was not full.
type gap struct {
	stop   chan struct{}
	done   sync.WaitGroup
	total  time.Duration
	lowest int64
}

func (k *kubelet) watchForGaps(resource string, full int64) *gap {
	g := &gap{stop: make(chan struct{}), lowest: full}
	g.done.Go(func() {
		last := time.Now()
		for {
			select {
			case <-g.stop:
				return
			default:
			}
			now := k.offer(resource)
			if now.allocatable < full {
				g.total += time.Since(last)
				g.lowest = min(g.lowest, now.allocatable)
			}
			last = time.Now()
			time.Sleep(200 * time.Microsecond)
		}
	})
	return g
}

// check ends the watch. 1.37 keeps two instances side by side, so there the hand-over must not be
// seen at all; before, the older stream's end takes the newer one's connection with it, and the
// newer registers again.
func (g *gap) check(t *testing.T) {
	t.Helper()
	close(g.stop)
	g.done.Wait()
	longest := time.Second
	if keepsInstancesSideBySide {
		longest = 0
	}
	if g.total > longest {
		t.Errorf("allocatable fell to %d for %v in all, want at most %v", g.lowest, g.total, longest)
	}
	t.Logf("gap %v", g.total)
}

// A rolling update with surge: the new pod is there before the old one goes.
func TestSecondInstanceTakesOver(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		old := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		held := k.mustAdmit(newPod("lives-on", gpuResource, 2))
		for i, end := range []func(*plugin){(*plugin).stop, (*plugin).kill, (*plugin).stop} {
			gaps := k.watchForGaps(gpuResource, 8)
			successor := k.startAnother()
			end(old)
			time.Sleep(settled)
			k.waitFor(gpuResource, 8, 8)
			gaps.check(t)

			k.staysAt(settled, gpuResource, 8, 8)
			pod := k.mustAdmit(newPod(fmt.Sprintf("update-%d", i), gpuResource, 6))
			k.options(held)
			k.end(pod)
			successor.mustRun()
			old = successor
		}
		n.waitForSockets(1) // the killed one's went when the next one started
	})
}

func (n *node) waitForSockets(count int) {
	n.t.Helper()
	eventually(n.t, patience, fmt.Sprintf("%d plugin sockets", count), func() (bool, string) {
		found := n.sockets()
		return len(found) == count, fmt.Sprintf("there are %q", found)
	})
}

// An update that is taken back, or whose pod is killed: the newer instance goes, the older one
// serves on.
func TestNewerInstanceEndsFirst(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		for i, end := range []func(*plugin){(*plugin).stop, (*plugin).kill} {
			newer := k.startAnother()
			gaps := k.watchForGaps(gpuResource, 8)
			end(newer)
			time.Sleep(settled)
			k.waitFor(gpuResource, 8, 8)
			gaps.check(t)
			k.staysUsable(fmt.Sprintf("after-newer-one-%d", i))
		}
	})
}

// The last list of an instance that has ended stays in force on 1.37 until somebody sends another.
func TestListOfAnEndedInstanceIsReplaced(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		old := n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		// Another configuration: this one looks away from faults, so it has no reason to send.
		k.startAnother("DP_DISABLE_HEALTHCHECKS=all")
		n.sim("fault", "--gpu", "3", "--xid", "79")
		if keepsInstancesSideBySide {
			k.waitFor(gpuResource, 8, 7)
		}
		old.stop()
		k.waitFor(gpuResource, 8, 8)
		k.staysAt(settled, gpuResource, 8, 8)
	})
}

// Three at once, restarted in turn with the kubelet in between: in the end somebody serves.
func TestInstancesAndKubeletInAnyOrder(t *testing.T) {
	onNode(t, "dgx-h100", func(n *node) {
		k := n.startKubelet()
		a, b := n.startPlugin(), n.startPlugin()
		k.waitFor(gpuResource, 8, 8)
		k.restart()
		k.waitFor(gpuResource, 8, 8)
		a.kill()
		k.staysUsable("first-gone")
		c := n.startPlugin()
		k.restart()
		b.stop()
		k.staysUsable("second-gone")
		c.kill()
		n.startPlugin()
		k.restart()
		k.staysUsable("third-gone")
	})
}
