//go:build e2e && full

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of what others may notice of changes in the folder of the CNI configurations while pods
// wait in the room.
const (
	folderChanges = 4
	folderEvery   = 20 * time.Second
	folderRatio   = 1.5
	// folderSlack is what an exempt pod may lose at most when all leave the room at once: they look at the
	// folder every 250 ms, and then containerd takes down what 30 pods had. The trap itself takes as long as
	// the longest wait.
	folderSlack = 2 * time.Second
)

// The folder of the CNI configurations changes every 20 s while 30 pods wait in the room, with the
// daemon at work and with one that hangs: containerd then wants the lock that those who wait hold.
// The node stays ready, no exempt pod waits for those that wait, and no pod loses its place.
func TestTheCNIFolderChangesWhilePodsWait(t *testing.T) {
	repeated(t, folderChangesWhilePodsWait)
}

// folderChangesWhilePodsWait is one try. While other work takes more than a third of the machine, no pod starts in
// its normal time.
func folderChangesWhilePodsWait(t *testing.T) (discarded string) {
	t.Helper()
	before := readMachine(t)
	d, ns := startDaemonWithRoom(t), namespace(t)
	normal := exemptStarts(t, folderChanges, func() {})
	ready, stop := watchNode(t)
	slow, order, _ := fillRoom(t, d, ns, roomCrowd, func() { deploy(t, ns, "herd", roomCrowd, herdPod(0.1)) }, nil)

	working := exemptStarts(t, folderChanges, func() { changeFolder(t) })
	assert.Equal(t, order, d.waitingNames(t), "the order of those that wait")
	require.NoError(t, d.Signal(t.Context(), syscall.SIGSTOP))
	goOn := func() { assert.NoError(t, d.Signal(context.Background(), syscall.SIGCONT)) }
	t.Cleanup(goOn)                 // or nobody could stop it
	exemptStarts(t, 1, func() {})   // containerd gives up the plugin that does not answer
	after(t.Context(), folderEvery) // those that were turned away are back, and wait
	hanging := exemptStarts(t, folderChanges, func() { changeFolder(t) })
	goOn()
	eventually(t, "it paces again", func() bool { return d.status(t).Ready })
	waits := d.waitingNames(t)
	left := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return !slices.Contains(waits, name) })
	assert.Equal(t, left, waits, "the order of those that still wait")
	assert.Zero(t, ready.Load(), "moments in which the node was not ready") // stop ends the watch by an error
	stop()
	slow.release(t)
	polled(t, time.Second, "all are ready", func() bool { return allReady(t, ns, roomCrowd+roomLimit) })
	figure(t, "an exempt pod runs after %.1f s; with 30 in the room, and the folder changed right before, after %.1f s (%.1f s at most); with a daemon that hangs %.1f s (%.1f s at most), when %d of 30 had gone on by themselves",
		middle(normal), middle(working), slices.Max(working).Seconds(), middle(hanging), slices.Max(hanging).Seconds(), roomCrowd-len(left))
	for what, took := range map[string][]time.Duration{"works": working, "hangs": hanging} {
		late := above("seconds until an exempt pod runs, with a daemon that "+what, slices.Max(took).Seconds(), folderRatio*middle(normal)+folderSlack.Seconds())
		if before.since(t).share() > tolerableForeign {
			discarded = cmp.Or(discarded, late)
			continue
		}
		assert.Empty(t, late)
	}
	return discarded
}

// changeFolder has containerd read the folder of its CNI configurations anew.
func changeFolder(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(node.Dir, "cni", "99-other"), []byte(unique()), 0o600))
}

// exemptStarts returns how long pods that are exempt, also where no daemon says so, take until
// their process runs, each after a call of before.
func exemptStarts(t *testing.T, count int, before func()) (took []time.Duration) {
	t.Helper()
	const ns = metav1.NamespaceSystem
	for i := range count {
		name := fmt.Sprintf("exempt-%d-%s", i, unique())
		began := time.Now()
		before()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "its process runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
		took = append(took, time.Since(began))
		t.Logf("an exempt pod ran after %.2f s", took[i].Seconds())
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
		if count > 1 {
			after(t.Context(), folderEvery-time.Since(began))
		}
	}
	return took
}

func middle(all []time.Duration) float64 {
	return slices.Sorted(slices.Values(all))[len(all)/2].Seconds()
}

// watchNode counts the moments in which the API server says that the node is not ready, until stop
// is called.
func watchNode(t *testing.T) (unready *atomic.Int64, stop func()) {
	t.Helper()
	unready = &atomic.Int64{}
	w, err := node.Client().CoreV1().Nodes().Watch(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok || !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				unready.Add(1)
			}
		}
	}()
	return unready, func() { w.Stop(); <-done }
}
