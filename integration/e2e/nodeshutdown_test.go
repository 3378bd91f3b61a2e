//go:build e2e && full

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab/logind"
)

// Numbers of pods on a node that shuts down: the starting pods, and the others, the last of which
// are never restarted. With the daemon, the others wait.
const (
	shutdownLimit  = 5
	shutdownOthers = 20
	shutdownOnce   = 6
	// shutdownGrace is the time that kubelet allows for a shutdown of the node.
	shutdownGrace = 30 * time.Second
	// shutdownSlack allows for differences between two shutdowns of a few seconds.
	shutdownSlack = 2 * time.Second
)

// systemd-logind shuts the node down and kubelet ends its pods while 20 pods wait at the gate and
// by refusal: the machine may go as soon as without the daemon, and no process of a waiting pod
// starts once kubelet reports the shutdown on its Node. logind and the system bus are stand-ins,
// see package logind. A try that is too slow is repeated, both with and without the daemon.
func TestNodeShutsDownWhilePodsWait(t *testing.T) {
	bus := gracefulNode(t)
	repeated(t, func(t *testing.T) string {
		without, ended := shutsDownUnpaced(t, bus)
		if ended < shutdownLimit+shutdownOthers {
			return fmt.Sprintf("without the daemon, kubelet ended %d of %d pods in time", ended, shutdownLimit+shutdownOthers)
		}
		with := shutsDownPaced(t, bus)
		figure(t, "kubelet lets the machine go %.1f s after the signal while %d of %d pods wait, %.1f s without the daemon",
			with.Seconds(), shutdownOthers, shutdownLimit+shutdownOthers, without.Seconds())
		return above("seconds until the machine goes", with.Seconds(), shutdownRatio*without.Seconds()+shutdownSlack.Seconds())
	})
}

// gracefulNode makes kubelet delay the node's shutdown until the test ends.
func gracefulNode(t *testing.T) *logind.Logind {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: node.SystemBus, Net: "unix"})
	require.NoError(t, err)
	require.NoError(t, os.Chmod(node.SystemBus, 0o600))
	// logind allows more than kubelet asks for, otherwise kubelet would write logind's
	// configuration.
	bus := logind.New(2 * shutdownGrace)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- bus.Serve(ctx, listener) }()
	t.Cleanup(func() {
		err := node.RestartKubelet(context.Background(), nil)
		cancel()
		assert.NoError(t, errors.Join(err, <-served), "kubelet's configuration is restored")
	})
	comesUp(t, bus)
	return bus
}

// comesUp restarts kubelet and waits until it delays a shutdown.
func comesUp(t *testing.T, bus *logind.Logind) {
	t.Helper()
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) {
		config["shutdownGracePeriod"], config["shutdownGracePeriodCriticalPods"] = shutdownGrace.String(), "10s"
	}))
	eventually(t, "kubelet delays a shutdown", func() bool {
		held := bus.Inhibitors()
		return len(held) == 1 && held[0].Who == "kubelet"
	})
}

// shutsDownUnpaced returns how long a shutdown takes without the daemon, when all pods run, and how
// many pods kubelet ended in time.
func shutsDownUnpaced(t *testing.T, bus *logind.Logind) (took time.Duration, ended int) {
	t.Helper()
	ns := namespace(t)
	createStarting(t, ns)
	createOthers(t, ns)
	eventually(t, "all run", func() bool { return runningIn(t, ns, "") == shutdownLimit+shutdownOthers })
	took, _, ended = shutsDown(t, bus, ns)
	return took, ended
}

// shutsDownPaced returns how long a shutdown takes while the same pods wait, and checks that the
// waiting pods do not start.
func shutsDownPaced(t *testing.T, bus *logind.Logind) time.Duration {
	t.Helper()
	d := startDaemon(t, placesForAll...)
	// Each slot may be held for 30 minutes, so that some of the pods have a place for an hour, and the others none.
	d.configure(t, fmt.Sprintf("{startTimeout: 30m, throttleConfig: {maxConcurrent: {value: %d}, noProgressAfter: 10m}}", shutdownLimit))
	starting, others := namespace(t), namespace(t)
	createStarting(t, starting)
	eventually(t, "the slots are held", func() bool {
		return len(d.status(t).Starting) == shutdownLimit && runningIn(t, starting, "") == shutdownLimit
	})
	createOthers(t, others)
	eventually(t, "some pods wait at the gate, and others are refused", func() bool {
		s := d.status(t)
		return len(s.Waiting) == shutdownOthers && s.Gate.Waiters > 0 && s.Refused.Sandbox+s.Refused.Container >= shutdownOnce
	})
	atGate := d.status(t).Gate.Waiters
	took, said, ended := shutsDown(t, bus, starting, others)
	assert.Equal(t, shutdownLimit+shutdownOthers, ended, "pods that kubelet ended in time")
	t.Logf("%d pods waited at the gate, %d were refused", atGate, shutdownOthers-atGate)

	assertNoneAfter(t, others, said)
	assertAllPaced(t, d)
	eventually(t, "no pod waits any more", func() bool {
		s := d.status(t)
		return len(s.Waiting) == 0 && len(s.Starting) == 0 && s.Gate.Waiters == 0 && len(hooks(t)) == 0
	})
	return took
}

// assertNoneAfter checks that no process of a namespace began after kubelet had reported the
// shutdown on its Node. That report has a resolution of a second, and a process that was admitted
// just before needs a moment to begin. Pods that started before took the slots of pods that kubelet
// had already ended.
func assertNoneAfter(t *testing.T, ns string, said time.Time) {
	t.Helper()
	const second, step = time.Second, 2 * time.Second
	early := 0
	for _, l := range lives(t, ns) {
		if l.started.IsZero() {
			continue
		}
		early++
		assert.Less(t, l.started, said.Add(second+step), "%s started %.1f s after kubelet had reported the shutdown", l.pod.Name, l.started.Sub(said).Seconds())
	}
	assert.LessOrEqual(t, early, shutdownLimit, "pods that started before the report")
	figure(t, "%d of %d pods started before kubelet had reported the shutdown", early, shutdownOthers)
}

// shutdownReported returns when kubelet reported the shutdown on its Node.
func shutdownReported(t *testing.T) (said time.Time) {
	t.Helper()
	eventually(t, "kubelet reports the shutdown on its Node", func() bool {
		n, err := node.Client().CoreV1().Nodes().Get(t.Context(), node.NodeName, metav1.GetOptions{})
		require.NoError(t, err)
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && strings.Contains(c.Message, "node is shutting down") {
				said = c.LastTransitionTime.Time
				return true
			}
		}
		return false
	})
	return said
}

// shutsDown shuts the node down and starts it again. It returns how long kubelet delays the
// shutdown for the pods of these namespaces, when kubelet reported the shutdown on its Node, and
// how many pods it ended in that time.
func shutsDown(t *testing.T, bus *logind.Logind, namespaces ...string) (took time.Duration, said time.Time, ended int) {
	t.Helper()
	size := logSize(t, node.Kubelet)
	took, err := bus.Shutdown(t.Context())
	require.NoError(t, err, "after %s", took)
	t.Logf("kubelet lets the machine go after %.1f s", took.Seconds())
	said = shutdownReported(t)
	log := logSince(t, node.Kubelet, size)
	ended = strings.Count(log, "Shutdown manager finished killing pod")
	for _, ns := range namespaces {
		eventually(t, "the API server reports the end of the pods", func() bool {
			for _, p := range pods(t, ns) {
				if p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
					return false
				}
			}
			return true
		})
	}
	comesUp(t, bus)
	return took, said, ended
}

// createStarting creates pods that never get ready.
func createStarting(t *testing.T, ns string) {
	t.Helper()
	for i := range shutdownLimit {
		createPod(t, ns, fmt.Sprintf("starting-%d", i), herdPod(0, sleeping("1h")))
	}
}

// createOthers creates pods that wait while the others start.
func createOthers(t *testing.T, ns string) {
	t.Helper()
	for i := range shutdownOthers {
		once := func(spec *corev1.PodSpec) {
			if i >= shutdownOthers-shutdownOnce {
				spec.RestartPolicy = corev1.RestartPolicyNever
			}
		}
		createPod(t, ns, fmt.Sprintf("other-%d", i), herdPod(0, sleeping("1h"), once))
	}
}
