//go:build e2e && full

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// roomCrowd is how many pods wait when something happens to the room.
const roomCrowd = 30

// The daemon, kubelet and containerd are killed while 30 pods wait in the room, and start again
// three seconds later: no pod loses its place or starts meanwhile, and all pods and the node are
// ready at the end.
func TestTheRoomIsKeptWhenAPartIsKilled(t *testing.T) {
	holders := map[string]func(latch) shape{"kubelet": holdsBefore, "containerd": holdsBefore}
	for _, name := range []string{"daemon", "kubelet", "containerd"} {
		t.Run(name, func(t *testing.T) {
			d := startDaemonWithRoom(t)
			part := map[string]*lab.Service{"daemon": d.Service, "kubelet": node.Kubelet, "containerd": node.Containerd}[name]
			ns, begin := namespace(t), time.Now()
			slow, order, room := fillRoom(t, d, ns, roomCrowd, func() { deploy(t, ns, "herd", roomCrowd, herdPod(0.1)) }, holders[name])

			killed := time.Now()
			require.NoError(t, part.Kill(t.Context()))
			after(t.Context(), 3*time.Second)
			require.NoError(t, part.Start(t.Context()))
			eventually(t, "all pods wait again", func() bool {
				s := d.status(t)
				return s.Ready && len(s.Waiting) == roomCrowd && s.Room.Waiters+s.Gate.Waiters >= roomCrowd
			})
			assert.Greater(t, d.status(t).Room.Waiters, roomCrowd/2, "pods in the room")
			back := time.Since(killed)
			assert.Equal(t, order, d.waitingNames(t), "the order of the waiting pods")
			assert.Len(t, d.status(t).Starting, roomLimit, "starts under way that hold a slot")
			assert.Zero(t, readyOf(t, ns, "herd"), "pods that started while the slots were taken")

			slow.release(t)
			polled(t, time.Second, "all pods are ready", func() bool { return allReady(t, ns, roomCrowd+roomLimit) })
			require.NoError(t, node.AwaitReady(t.Context()))
			all := livesSince(t, ns, begin)
			logLives(t, begin, all)
			assertInRoomsTurn(t, name, order, all)
			figure(t, "%s killed with %d pods in the room: all pods waited again after %.1f s, in their order", name, room, back.Seconds())
		})
	}
}

// holdsBefore gives the pod an init container that waits for the latch. A restarted kubelet never
// reports such a pod ready, but briefly does so for a pod whose container runs.
func holdsBefore(l latch) shape {
	return func(spec *corev1.PodSpec) {
		waits := herdPod(0, withoutProbes, l.holds)
		spec.Volumes = waits.Volumes
		first := waits.Containers[0]
		first.Name, first.Args = "first", append(first.Args, "--done")
		spec.InitContainers = []corev1.Container{first}
	}
}

// assertInRoomsTurn is assertInTurn after a part of the node was killed. If kubelet or containerd
// was killed, the pods that were in the gate or were starting show a restart.
func assertInRoomsTurn(t *testing.T, killed string, order []string, all []life) {
	t.Helper()
	if killed == "daemon" {
		assertInTurn(t, order, all)
		return
	}
	assert.Len(t, all, len(order)+roomLimit)
	assert.LessOrEqual(t, mostStarting(t, all), roomLimit, "pods between the start of their process and ready")
	assertStartsInOrder(t, order, all, roomLimit)
	for _, l := range all {
		assert.LessOrEqual(t, restarts(l.pod), int32(1), "restarts of %s", l.pod.Name)
	}
}

// The same as TestDaemonGoneForGood, in the room: nothing but the room lets kubelet and containerd
// start a pod.
func TestTheRoomIsLeftOneByOneWithoutADaemon(t *testing.T) {
	d := startDaemonWithRoom(t, "--gate", "never")
	assertStartWithoutDaemon(t, d, func() { require.NoError(t, d.Kill(t.Context())) })
	require.NoError(t, d.Start(t.Context()))
}

// mostGone bounds how long a pod that waits in the room exists after its deletion.
const mostGone = 3 * time.Second

// Pods deleted while they wait in the room are gone within 3 s, whatever their grace period, and
// the others keep their order.
func TestAPodDeletedInTheRoomIsGoneAtOnce(t *testing.T) {
	d := startDaemonWithRoom(t)
	ns := namespace(t)
	leavers := []string{"leaves-a", "leaves-b", "leaves-c"}
	slow, order, room := fillRoom(t, d, ns, roomCrowd+len(leavers), func() {
		deploy(t, ns, "herd", roomCrowd, herdPod(0.1))
		eventually(t, "the herd waits", func() bool { return len(d.status(t).Waiting) == roomCrowd })
		for _, name := range leavers {
			createPod(t, ns, name, herdPod(0.1, withGrace(30)))
		}
	}, nil)
	var longest time.Duration
	for _, name := range leavers {
		began := time.Now()
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
		watched(t, name+" is gone", func() bool { return !exists(t, ns, name) })
		longest = max(longest, time.Since(began))
	}
	eventually(t, "the places of the deleted pods are free", func() bool { return len(d.status(t).Waiting) == roomCrowd })
	assert.Equal(t, order[:roomCrowd], d.waitingNames(t), "the order of the waiting pods")
	figure(t, "of %d pods in the room, the last three were deleted, and were gone after %.2f s at most", room, longest.Seconds())
	assert.Less(t, longest, mostGone)
	slow.release(t)
	polled(t, time.Second, "all other pods are ready", func() bool { return allReady(t, ns, roomCrowd+roomLimit) })
}

// withGrace sets a pod's grace period in seconds.
func withGrace(seconds int64) shape {
	return func(spec *corev1.PodSpec) { spec.TerminationGracePeriodSeconds = &seconds }
}

// exists reports whether the API server has a pod.
func exists(t *testing.T, ns, name string) bool {
	t.Helper()
	list, err := node.Client().CoreV1().Pods(ns).List(context.WithoutCancel(t.Context()), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	return len(list.Items) > 0
}

// goneBound bounds how long 60 pods in the room take to run once the daemon is gone for good, and goneDeleted how long a
// pod that is deleted then is there.
const (
	goneBound   = 150 * time.Second
	goneDeleted = 90 * time.Second
	lateAlone   = 5 * time.Second // how much later than usual a new pod runs then
)

// The daemon never comes back while 60 pods wait in the room for pods that take for ever. All of them run within a bound,
// those that are deleted meanwhile go, and then pods start as without the room.
func TestPodsInTheRoomOfADaemonThatNeverComesBack(t *testing.T) {
	const count, leavers = 60, 3
	d := startDaemonWithRoom(t)
	ns := namespace(t)
	usual := exemptStarts(t, 1, func() {})[0]
	_, order, room := fillRoom(t, d, ns, count, func() { deploy(t, ns, "herd", count, herdPod(0.1)) }, nil)
	require.NoError(t, d.Kill(t.Context()))
	killed := time.Now()
	last := order[count-leavers:]
	for _, name := range last {
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	polled(t, 500*time.Millisecond, "the deleted pods are gone", func() bool {
		return !slices.ContainsFunc(last, func(name string) bool { return exists(t, ns, name) })
	})
	gone := time.Since(killed)
	polled(t, 500*time.Millisecond, "the herd runs", func() bool { return readyOf(t, ns, "herd") == count })
	took := time.Since(killed)
	after(t.Context(), time.Until(killed.Add(goneBound))) // no process waits for a daemon any more
	began := time.Now()
	createPod(t, ns, "late", herdPod(0, withoutProbes))
	watched(t, "a new pod runs", func() bool { return len(runningContainers(t, ns, "late")) == 1 })
	late := time.Since(began)
	figure(t, "the daemon is gone with %d pods in the room: all ready after %.1f s, and the last three, which were deleted, gone after %.1f s; a pod created later runs after %.1f s, while %.1f s is usual",
		room, took.Seconds(), gone.Seconds(), late.Seconds(), usual.Seconds())
	assert.Less(t, took, goneBound)
	assert.Less(t, gone, goneDeleted)
	assert.Less(t, late, usual+lateAlone)
	require.NoError(t, d.Start(t.Context()))
}
