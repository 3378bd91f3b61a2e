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

// Bounds of how changes in the folder of the CNI configurations may delay others while pods wait in
// the room.
const (
	folderChanges = 4
	folderEvery   = 20 * time.Second
	folderRatio   = 1.5
	// folderSlack bounds the delay of an exempt pod when all pods leave the room at once: they look
	// at the folder every 250 ms, and then containerd takes down 30 pods' networks. The fault that
	// this scenario looks for lasts as long as the longest wait.
	folderSlack = 2 * time.Second
)

// The folder of the CNI configurations changes every 20 s while 30 pods wait in the room, with a
// working and with a hanging daemon: the node stays ready, no exempt pod waits for the waiting
// pods, and no pod loses its place. After a change containerd wants the lock that the waiting pods
// hold.
func TestTheCNIFolderChangesWhilePodsWait(t *testing.T) {
	repeated(t, folderChangesWhilePodsWait)
}

// folderChangesWhilePodsWait is one try. A try that is too slow is discarded if other work took
// more than a third of the machine, because no pod then starts in its normal time.
func folderChangesWhilePodsWait(t *testing.T) (discarded string) {
	t.Helper()
	before := readMachine(t)
	d, ns := startDaemonWithRoom(t), namespace(t)
	normal := exemptStarts(t, folderChanges, func() {})
	ready, stop := watchNode(t)
	slow, order, _ := fillRoom(t, d, ns, roomCrowd, func() { deploy(t, ns, "herd", roomCrowd, herdPod(0.1)) }, nil)

	working := exemptStarts(t, folderChanges, func() { changeFolder(t) })
	assert.Equal(t, order, d.waitingNames(t), "the order of the waiting pods")
	require.NoError(t, d.Signal(t.Context(), syscall.SIGSTOP))
	resume := func() { assert.NoError(t, d.Signal(context.Background(), syscall.SIGCONT)) }
	t.Cleanup(resume)               // a stopped process ignores SIGTERM
	exemptStarts(t, 1, func() {})   // containerd closes the connection of the plugin that does not answer
	after(t.Context(), folderEvery) // kubelet has retried the failed pods, and they wait
	hanging := exemptStarts(t, folderChanges, func() { changeFolder(t) })
	resume()
	eventually(t, "the daemon paces pods again", func() bool { return d.status(t).Ready })
	waits := d.waitingNames(t)
	left := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return !slices.Contains(waits, name) })
	assert.Equal(t, left, waits, "the order of the pods that still wait")
	assert.Zero(t, ready.Load(), "reports that the node was not ready") // before stop, which ends the watch with an error
	stop()
	slow.release(t)
	polled(t, time.Second, "all pods are ready", func() bool { return allReady(t, ns, roomCrowd+roomLimit) })
	figure(t, "an exempt pod runs after %.1f s; with 30 pods in the room, and the folder changed right before, after %.1f s (%.1f s at most); with a hanging daemon %.1f s (%.1f s at most), when %d of 30 had left the room by themselves",
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

// changeFolder makes containerd read the folder of its CNI configurations again.
func changeFolder(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(node.Dir, "cni", "99-other"), []byte(unique()), 0o600))
}

// exemptStarts creates pods that are exempt also without a daemon, each after a call of before. It
// returns how long each takes until its process runs.
func exemptStarts(t *testing.T, count int, before func()) (took []time.Duration) {
	t.Helper()
	const ns = metav1.NamespaceSystem
	for i := range count {
		name := fmt.Sprintf("exempt-%d-%s", i, unique())
		began := time.Now()
		before()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "the process of the pod runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
		took = append(took, time.Since(began))
		t.Logf("an exempt pod ran after %.2f s", took[i].Seconds())
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
		if count > 1 {
			after(t.Context(), folderEvery-time.Since(began))
		}
	}
	return took
}

// watchNode counts the API server's reports that the node is not ready, until stop is called.
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

// An agent that renames the configurations of others comes to the node: --cni=auto takes the room out, and says why. When
// the agent has gone, the room is there again. Pods start meanwhile.
func TestTheRoomGoesWhereAnAgentRenamesFiles(t *testing.T) {
	removeRoomLater(t)
	d := startDaemon(t, roomArgs("auto")...)
	d.awaitRoom(t)
	ns := namespace(t)
	configs, _ := roomFolders()
	renamed := filepath.Join(configs, "05-other.conf.cilium_bak")
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(renamed)) })
	require.NoError(t, os.WriteFile(renamed, []byte("{}"), 0o600))
	eventually(t, "the room is out", func() bool { return !d.status(t).Room.Installed })
	assert.Contains(t, d.status(t).Room.WhyNot, "Cilium has renamed 05-other.conf")
	assert.Contains(t, d.logged(t), "--cni=auto installs no waiting room on this node")
	assert.NoFileExists(t, roomFiles()[0])
	createPod(t, ns, "without", herdPod(0.1))
	eventually(t, "a pod is ready without the room", func() bool { return allReady(t, ns, 1) })
	require.NoError(t, os.Remove(renamed))
	eventually(t, "the room is back", func() bool { return d.status(t).Room.Installed })
	createPod(t, ns, "with", herdPod(0.1))
	eventually(t, "a pod is ready with the room", func() bool { return allReady(t, ns, 2) })
}
