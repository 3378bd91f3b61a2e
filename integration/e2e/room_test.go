//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// inRoom are the arguments with which a daemon installs the waiting room on the node.
func inRoom() []string {
	return []string{"--cni", "--cni-conf-dir", filepath.Join(node.Dir, "cni"), "--cni-bin-dir", filepath.Join(node.Dir, "cni-bin")}
}

// startDaemonWithRoom starts a daemon with the waiting room, which is gone when the test ends.
func startDaemonWithRoom(t *testing.T, args ...string) *daemon {
	t.Helper()
	t.Cleanup(func() {
		for _, name := range []string{"cni/00-pod-pacemaker.conflist", "cni-bin/pacemaker-cni"} {
			assert.NoError(t, os.RemoveAll(filepath.Join(node.Dir, name)))
		}
	})
	d := startDaemon(t, append(inRoom(), args...)...)
	eventually(t, "the waiting room is installed", func() bool { return d.status(t).Room.Installed })
	return d
}

// looks is how the pods of a namespace looked to those who watch them.
type looks struct {
	mu      sync.Mutex
	odd     map[string]int // what else than waiting and running was seen
	pending map[string]bool
}

// watchLooks follows every change of the pods of a namespace until stop is called.
func watchLooks(t *testing.T, ns string) (seen *looks, stop func()) {
	t.Helper()
	seen = &looks{odd: map[string]int{}, pending: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w, err := node.Client().CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type != watch.Deleted {
				seen.see(p)
			}
		}
	}()
	return seen, func() { w.Stop(); cancel(); <-done }
}

func (l *looks) see(p *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Status.Phase != corev1.PodPending && p.Status.Phase != corev1.PodRunning {
		l.odd[string(p.Status.Phase)]++
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			l.odd[w.Reason]++
		}
	}
}

// warnings gives the Warning events of a namespace that say that a pod could not start.
func warnings(t *testing.T, ns string) (all []string) {
	t.Helper()
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.Reason != "Unhealthy" {
			all = append(all, e.Reason+": "+strings.TrimSpace(e.Message))
		}
	}
	return all
}

// In the waiting room a pod that waits looks like a pod that waits.
func TestWaitingRoom(t *testing.T) { roomHerd(t, 60) }

func roomHerd(t *testing.T, count int32) {
	d := startDaemonWithRoom(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	ns := namespace(t)
	seen, stop := watchLooks(t, ns)
	begin := time.Now()
	deploy(t, ns, "herd", count, herdPod(0.5))
	eventually(t, "all are ready", func() bool { return readyOf(t, ns, "herd") == int(count) })
	took := time.Since(begin)
	stop()
	all := lives(t, ns)
	assert.Empty(t, seen.odd, "how pods looked, beside waiting and running")
	assert.Empty(t, warnings(t, ns))
	assert.LessOrEqual(t, mostStarting(all), 2)
	s := d.status(t)
	assert.Zero(t, s.Refused.Sandbox+s.Refused.Container, "nobody is refused")
	d.idle(t)
	figure(t, "%d pods through the waiting room ready after %.1f s", count, took.Seconds())
}
