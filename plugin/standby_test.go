package plugin

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// status returns the daemon's status from the administrator's socket; false: there is no answer.
func (n *node) status() (admin.Status, bool) {
	s, err := admin.NewClient(n.options.AdminPath()).Status(n.ctx)
	return s, err == nil
}

func TestASecondDaemonStandsByAndTakesOver(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) { o.ConfigFile, o.Gate = writeConfig(t, oneAtATimeLate), waiting.GateAlways }))
	require.NoError(t, n.rt.Start())
	begin := func(version string) (d *Daemon, address string, stop func()) {
		o := n.options
		o.Version, o.HTTPAddress = version, freeAddress(t)
		d, err := newWith(o, slowly())
		require.NoError(t, err)
		return d, o.HTTPAddress, n.runs(d)
	}
	_, _, stopFirst := begin("first")
	n.connected()
	n.eventually("the first answers", func() bool { s, ok := n.status(); return ok && s.Ready })
	n.strangePod("holder").runs().startsNow("app")
	waiting := n.strangePod("waiting").runs().waitsAtGate("app")

	second, address, stopSecond := begin("second")
	n.options.HTTPAddress = address
	n.eventually("the second stands by", func() bool { return n.get("/readyz") == http.StatusOK })
	require.ErrorIs(t, second.Ready(), admin.ErrStandby)
	require.ErrorContains(t, second.Ready(), "version first")
	assert.Equal(t, http.StatusOK, n.get("/healthz"))
	assert.False(t, second.connection.State().Connected, "the second daemon does not register with the runtime")
	says, err := testutil.GatherAndCount(second.metrics(), "pod_pacemaker_connected")
	require.NoError(t, err)
	assert.Zero(t, says, "0 would raise PodPacemakerNotPacing")
	s, ok := n.status()
	require.True(t, ok)
	assert.Equal(t, "first", s.Version)
	assert.Equal(t, 1, s.Gate.Waiters)

	stopFirst()
	n.eventually("the second paces", func() bool { return second.Ready() == nil })
	says, err = testutil.GatherAndCount(second.metrics(), "pod_pacemaker_connected")
	require.NoError(t, err)
	assert.Equal(t, 1, says)
	n.eventually("the second answers", func() bool { s, ok := n.status(); return ok && s.Version == "second" })
	n.eventually("the hook found the second", func() bool { return second.waiting.Gate.Waiters() == 1 })
	assert.False(t, waiting.over())
	assert.FileExists(t, n.options.AdminPath())
	assert.FileExists(t, n.options.SocketPath())
	stopSecond()
	assert.NoFileExists(t, n.options.AdminPath())
	assert.NoFileExists(t, n.options.SocketPath())
}

// A daemon has the lock before it is connected, and may stay so: the runtime has NRI switched off.
func TestADaemonThatStandsByAsksWhetherPodsArePaced(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone)
	first, err := newWith(n.options, slowly())
	require.NoError(t, err)
	stopFirst := n.runs(first)
	n.eventually("the first answers", func() bool { _, ok := n.status(); return ok })
	require.Error(t, first.nodePaced(n.ctx))
	second, err := newWith(n.options, slowly())
	require.NoError(t, err)
	n.runs(second)
	n.eventually("the second stands by", func() bool { return second.standby.Load() != nil })
	require.ErrorContains(t, second.nodePaced(n.ctx), "does not pace pods: NRI socket")

	require.NoError(t, n.rt.Start())
	n.eventually("the first paces", func() bool { return first.nodePaced(n.ctx) == nil })
	require.ErrorIs(t, second.Ready(), admin.ErrStandby)
	require.NoError(t, second.nodePaced(n.ctx))
	stopFirst()
	n.eventually("the second paces", func() bool { return second.Ready() == nil })
	require.NoError(t, second.nodePaced(n.ctx))
}

func TestTheNextDaemonDoesNotWaitForTheReportsOfTheLast(t *testing.T) {
	t.Parallel()
	c := unstartedAPINode(t)
	var asked atomic.Bool
	hung := make(chan struct{})
	c.kube.PrependReactor("*", "leases", func(clienttest.Action) (bool, runtime.Object, error) {
		asked.Store(true)
		<-hung
		return false, nil, nil
	})
	require.NoError(t, c.rt.Start())
	stop := c.runs(c.d)
	c.connected()
	c.eventually("the daemon checks whether it is its turn to sum up", asked.Load)

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	c.eventually("the lock is free", func() bool {
		lock, _, err := rundir.TryLock(c.options.RunDir, c.options.Version)
		return err == nil && lock != nil && lock.Close() == nil
	})
	select {
	case <-stopped:
		t.Error("the daemon did not wait for the API server")
	default:
	}
	close(hung)
	<-stopped
}

// The garbage collector closes a lock that a daemon forgot, but late. So this test looks for the open file.
func TestADaemonThatEndsClosesItsLock(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone)
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	open := func() (count int) {
		files, err := filepath.Glob("/proc/self/fd/*")
		require.NoError(t, err)
		for _, file := range files {
			if to, err := os.Readlink(file); err == nil && to == rundir.LockPath(n.options.RunDir) {
				count++
			}
		}
		return count
	}
	stop := n.runs(d)
	n.eventually("the daemon paces", d.pacing.Load)
	assert.Equal(t, 1, open())
	stop()
	assert.Zero(t, open())
}

func TestADaemonThatStandsByEndsAtOnce(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone)
	lock, _, err := rundir.TryLock(n.options.RunDir, n.options.Version)
	require.NoError(t, err)
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	stop := n.runs(d)
	n.eventually("the daemon stands by", func() bool { return d.standby.Load() != nil })
	stop()
	require.NoError(t, lock.Close())
}

// kubelet makes the folder of a DaemonSet with mode 0755. Another user who opens it could lock it, and so keep the hooks.
func TestOnlyTheDaemonsUserOpensTheRunFolder(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) {
		require.NoError(t, os.MkdirAll(o.RunDir, 0o700))
		require.NoError(t, os.Chmod(o.RunDir, 0o755))
	}))
	lock, _, err := rundir.TryLock(n.options.RunDir, n.options.Version)
	require.NoError(t, err)
	mode := func() os.FileMode {
		info, err := os.Stat(n.options.RunDir)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	stop := n.runs(d)
	n.eventually("the daemon stands by", func() bool { return d.standby.Load() != nil })
	assert.Equal(t, os.FileMode(0o755), mode(), "it does not have the lock")
	require.NoError(t, lock.Close())
	n.eventually("the folder is closed", func() bool { return mode() == 0o700 })
	stop()
}

func TestMetricsAreServedOnceTheirAddressIsFree(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", freeAddress(t))
	require.NoError(t, err)
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) { o.HTTPAddress = taken.Addr().String() }))
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	said := n.logged()
	n.runs(d)
	n.eventually("the daemon says that the address is taken", func() bool {
		return strings.Contains(said(), "metrics and health are not served at this address") && strings.Contains(said(), "address already in use")
	})
	require.NoError(t, taken.Close())
	n.eventually("it serves", func() bool { return n.get("/healthz") == http.StatusOK })
}

func TestADaemonPacesWithoutMetricsWhereItCannotListen(t *testing.T) {
	t.Parallel()
	// The test network of RFC 5737 has no address of this machine.
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) { o.HTTPAddress = "192.0.2.1:9464" }))
	require.NoError(t, n.rt.Start())
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	said := n.logged()
	n.runs(d)
	n.eventually("the daemon says that it cannot listen", func() bool {
		return strings.Contains(said(), "metrics and health are not served at this address")
	})
	n.connected()
	assert.NoError(t, d.Ready())
}

func TestADaemonPacesWhereItCannotAnswerQuestionsAboutPods(t *testing.T) {
	t.Parallel()
	taken := filepath.Join(t.TempDir(), "why.sock")
	require.NoError(t, os.WriteFile(taken, nil, 0o600))
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) { o.WhySocket = taken }))
	require.NoError(t, n.rt.Start())
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	said := n.logged()
	n.runs(d)
	n.eventually("the daemon says that it cannot answer", func() bool {
		return strings.Contains(said(), "questions about pods are not answered at this socket (--why-socket)") && strings.Contains(said(), "something else than a socket")
	})
	n.connected()
	require.NoError(t, d.Ready())
	require.NoError(t, os.Remove(taken))
	n.eventually("it answers", func() bool {
		_, err := admin.NewClient(taken).Why(n.ctx, "default", "none")
		return errors.Is(err, admin.ErrUnknownPod)
	})
}
