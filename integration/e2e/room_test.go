//go:build e2e

package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// roomSettles is for how long after its installation, a change in the folder of the CNI
// configurations, no pod begins to wait in the room.
const roomSettles = 10 * time.Second

// startDaemonWithRoom starts a daemon that installs the waiting room, and waits until pods may wait
// there. The room is removed when the test ends.
func startDaemonWithRoom(t *testing.T, args ...string) *daemon {
	t.Helper()
	removeRoomLater(t)
	d := startDaemon(t, append(roomArgs("on"), args...)...)
	d.awaitRoom(t)
	return d
}

// roomFolders returns the folders of the node's CNI configurations and plugins.
func roomFolders() (configs, plugins string) {
	return filepath.Join(node.Dir, "cni"), filepath.Join(node.Dir, "cni-bin")
}

// roomFiles returns the files of the waiting room, the configuration first.
func roomFiles() []string {
	configs, plugins := roomFolders()
	return []string{filepath.Join(configs, "00-pod-pacemaker.conflist"), filepath.Join(plugins, "pacemaker-cni")}
}

// roomArgs returns the flags of a daemon that uses the waiting room like that.
func roomArgs(use string) []string {
	configs, plugins := roomFolders()
	return []string{"--cni=" + use, "--cni-conf-dir", configs, "--cni-bin-dir", plugins}
}

// removeRoomLater removes the waiting room when the test ends.
func removeRoomLater(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for _, file := range roomFiles() {
			assert.NoError(t, os.RemoveAll(file))
		}
	})
}

// assertNoRoom checks that no file of the waiting room is on the node.
func assertNoRoom(t *testing.T) {
	t.Helper()
	for _, file := range roomFiles() {
		assert.NoFileExists(t, file)
	}
}

// awaitRoom waits until the daemon has installed the waiting room, and pods may wait there.
func (d *daemon) awaitRoom(t *testing.T) {
	t.Helper()
	eventually(t, "the waiting room is installed", func() bool { return d.status(t).Room.Installed })
	after(t.Context(), roomSettles)
}

// looks records how the pods of a namespace look to a watcher.
type looks struct {
	mu  sync.Mutex
	odd map[string]map[string]bool // states other than waiting and running, and the pods that had them
}

// watchLooks records every change of the pods of a namespace until stop is called.
func watchLooks(t *testing.T, ns string) (seen *looks, stop func()) {
	t.Helper()
	seen = &looks{odd: map[string]map[string]bool{}}
	ctx, pods := context.WithoutCancel(t.Context()), node.Client().CoreV1().Pods(ns)
	known, err := pods.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for i := range known.Items {
		seen.see(&known.Items[i])
	}
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, known.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) },
	})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type != watch.Deleted {
				seen.see(p)
			} else if !ok {
				seen.note("the watch broke: "+string(e.Type), "")
			}
		}
		seen.note("the watch ended", "")
	}()
	return seen, func() { w.Stop(); <-done }
}

func (l *looks) note(what, pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.odd[what] == nil {
		l.odd[what] = map[string]bool{}
	}
	l.odd[what][pod] = true
}

// pods returns which pods had a state so far.
func (l *looks) pods(what string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.odd[what]))
}

func (l *looks) see(p *corev1.Pod) {
	if p.Status.Phase != corev1.PodPending && p.Status.Phase != corev1.PodRunning {
		l.note(string(p.Status.Phase), p.Name)
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			l.note(w.Reason, p.Name)
		}
	}
}

// all returns what was recorded so far.
func (l *looks) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.odd))
}

// warnings returns the Warning events of a namespace, except those of probes and kubelet's
// complaint that the lab has no DNS service.
func warnings(t *testing.T, ns string) (all []string) {
	t.Helper()
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.Reason != "Unhealthy" && e.Reason != "MissingClusterDNS" {
			all = append(all, e.Reason+": "+e.Message)
		}
	}
	return all
}

// roomLimit is how many pods start at a time while others wait in the room.
const roomLimit = 2

// fillRoom fills the slots with pods that are slow until the latch is released. Then it creates
// count pods with create, and most of them wait in the room. It returns their order, and how many wait
// in the room. holds says how the latch holds the slow pods; nil means until they are ready.
func fillRoom(t *testing.T, d *daemon, ns string, count int, create func(), holds func(latch) shape) (slow latch, order []string, room int) {
	t.Helper()
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 10m}}")
	slow = newLatch(t)
	if holds == nil {
		holds = func(l latch) shape { return l.holds }
	}
	deploy(t, ns, "slow", roomLimit, herdPod(0.1, holds(slow)))
	eventually(t, "the slow pods hold the slots", func() bool { return len(d.status(t).Starting) == roomLimit })
	create()
	eventually(t, "all other pods wait", func() bool {
		s := d.status(t)
		gate := s.Gate.Waiters
		room = s.Room.Waiters
		return len(s.Waiting) == count && room+gate >= count
	})
	require.Greater(t, room, count/2, "pods in the waiting room: too few to check")
	return slow, d.waitingNames(t), room
}

// With the waiting room, 60 pods wait for two slots: they look waiting or running at each moment,
// no Warning event names them, no pod is refused, and they keep their order.
func TestWaitingRoom(t *testing.T) {
	roomHerd(t, 60)
}

// roomHerd is TestWaitingRoom with count pods.
func roomHerd(t *testing.T, count int) {
	t.Helper()
	d := startDaemonWithRoom(t)
	ns := namespace(t)
	seen, stop := watchLooks(t, ns)
	begin := time.Now()
	slow, order, room := fillRoom(t, d, ns, count, func() { deploy(t, ns, "herd", int32(count), herdPod(0.1)) }, nil)
	slow.release(t)
	polled(t, time.Second, "half of the herd is ready", func() bool { return readyOf(t, ns, "herd") >= count/2 })
	polled(t, time.Second, "all pods are ready", func() bool { return allReady(t, ns, count+roomLimit) })
	odd := seen.all() // read before stop ends the watch
	stop()
	assert.Empty(t, odd, "states of pods other than waiting and running")
	assert.Empty(t, warnings(t, ns))
	all := lives(t, ns)
	logLives(t, begin, all)
	assertInTurn(t, order, all)
	s := d.status(t)
	assert.Zero(t, s.Refused.Sandbox+s.Refused.Container, "refusals")
	d.idle(t)
	assertAllPaced(t, d)
	figure(t, "containerd %s: %d pods, %d of them in the waiting room, all ready after %.1f s", s.Runtime.Version, count, room, lastReady(all).Sub(begin).Seconds())
}

// assertInTurn checks that the pods started once each, in this order and within the limit.
func assertInTurn(t *testing.T, order []string, all []life) {
	t.Helper()
	assert.Len(t, all, len(order)+roomLimit)
	assert.LessOrEqual(t, mostStarting(t, all), roomLimit, "pods between the start of their process and ready")
	assertStartsInOrder(t, order, all, roomLimit)
	assertUnharmed(t, all)
}
