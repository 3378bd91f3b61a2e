package learning

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile/wholefiletest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	here = costs.Machine{CPU: "Z80", Cores: 2}
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
)

func pod(namespace string, like podwatch.Like) podwatch.Pod {
	return podwatch.Pod{Namespace: namespace, Like: like}
}

func burns(cpu time.Duration) costs.Start { return costs.Start{CPU: cpu, Wall: cpu, Peak: 1} }

func TestWhatAnExpectationRestsOn(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	m := New("", here, log)
	web := podwatch.Like{Owner: "Deployment/web", Revision: "a", Images: "web:1", MilliCPU: 500}
	assert.Equal(t, Expectation{Basis: None, Kind: "shop/Deployment/web template=a cpu=500m"}, m.Expect(pod("shop", web), false))
	m.Learn(noon, pod("shop", web), false, burns(4*time.Second))
	m.Learn(noon, pod("shop", web), true, burns(time.Second))
	for name, c := range map[string]struct {
		pod     podwatch.Pod
		restart bool
		basis   Basis
		cpu     float64
	}{
		"the same":         {pod("shop", web), false, Owner, 4},
		"after a crash":    {pod("shop", web), true, Owner, 1},
		"a new version":    {pod("shop", podwatch.Like{Owner: "Deployment/web", Revision: "b", Images: "web:2", MilliCPU: 500}), false, Revisions, 4},
		"with less CPU":    {pod("shop", podwatch.Like{Owner: "Deployment/web", Revision: "a", Images: "web:1", MilliCPU: 100}), false, Revisions, 4},
		"a pod of its own": {pod("shop", podwatch.Like{Images: "web:1", MilliCPU: 500}), false, Image, 4},
		"something else":   {pod("shop", podwatch.Like{Owner: "Deployment/db", Images: "db"}), false, Namespace, 4},
		"without an owner": {pod("shop", podwatch.Like{Images: "db"}), true, Namespace, 1},
	} {
		e := m.Expect(c.pod, c.restart)
		assert.Equal(t, c.basis, e.Basis, name)
		assert.InDelta(t, c.cpu, e.CPU.Mean, 1e-9, name)
		assert.Equal(t, 1, e.Count, name)
	}
}

// A tenant cannot teach the daemon what the pods of another tenant take.
func TestStartsOfAnotherNamespaceSayNothing(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	m := New("", here, log)
	web := podwatch.Like{Owner: "Deployment/web", Revision: "a", Images: "web:1"}
	for range 5 {
		m.Learn(noon, pod("b", web), false, burns(5*time.Minute))
	}
	assert.Equal(t, Expectation{Basis: None, Kind: "a/Deployment/web template=a"}, m.Expect(pod("a", web), false))
}

// Probes killed all first starts on a node. The restarts of the pods predict what the next first start takes.
func TestOtherStartsPredictAnUnknownOne(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	m := New("", here, log)
	web, killed := pod("shop", podwatch.Like{Owner: "Deployment/web", Revision: "a", Images: "web:1"}), burns(time.Second)
	killed.Killed = true
	m.Learn(noon, web, false, killed)
	assert.InDelta(t, 1, m.Expect(web, true).CPU.Mean, 1e-9)
	m.Learn(noon, web, true, burns(3*time.Second))
	e := m.Expect(web, false)
	assert.Equal(t, Owner, e.Basis)
	assert.InDelta(t, 3, e.CPU.Mean, 1e-9)
	m.Learn(noon, web, false, burns(4*time.Second))
	assert.InDelta(t, 4, m.Expect(web, false).CPU.Mean, 1e-9)
	assert.Equal(t, Namespace, m.Expect(pod("shop", podwatch.Like{Images: "db"}), false).Basis)
}

func TestStartsOfOneKindAreLearnedTogether(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	m := New("", here, log)
	kindOf := func(pod podwatch.Pod, restart bool) string { return m.Expect(pod, restart).Kind }
	web := podwatch.Like{Owner: "Deployment/web", Revision: "a", Images: "web:1", MilliCPU: 500}
	kind := kindOf(pod("shop", web), false)
	assert.Equal(t, kind, kindOf(pod("shop", web), false))
	assert.NotEqual(t, kind, kindOf(pod("shop", web), true), "after a crash")
	assert.NotEqual(t, kind, kindOf(pod("test", web), false))
	alone := podwatch.Like{Images: "db"}
	ofImage := kindOf(pod("shop", alone), false)
	assert.Equal(t, ofImage, kindOf(pod("shop", alone), false), "without an owner, the image counts")
	assert.NotEqual(t, ofImage, kindOf(pod("test", alone), false))
	assert.NotEqual(t, kind, kindOf(pod("shop", alone), false))
}

// An owner without revisions and without a CPU limit must not count as two owners.
func TestAStartIsLearnedOnce(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	m := New("", here, log)
	m.Learn(noon, pod("shop", podwatch.Like{Owner: "Job/once", Images: "i"}), false, burns(time.Second))
	all := m.Costs()
	assert.Len(t, all, 4)
	for key, c := range all {
		assert.Equal(t, 1, c.Count, key)
	}
}

func TestLearnedCostsOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "costs.json")
	web := pod("shop", podwatch.Like{Owner: "Deployment/web", Images: "web:1"})
	synctest.Test(t, func(t *testing.T) {
		log, logged := logtest.NewNullLogger()
		m := New(path, here, log)
		m.Load()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); assert.NoError(t, m.Run(ctx)) }()
		time.Sleep(writeEvery + time.Second)
		assert.NoFileExists(t, path, "nothing is learned yet")
		m.Learn(time.Now(), web, false, burns(4*time.Second))
		synctest.Wait()
		assert.NoFileExists(t, path, "the file is not written at once")
		time.Sleep(writeEvery)
		synctest.Wait()
		assert.FileExists(t, path)
		m.Learn(time.Now(), web, false, burns(4*time.Second))
		stop()
		<-ended
		assert.Empty(t, logged.AllEntries())
	})
	log, logged := logtest.NewNullLogger()
	m := New(path, here, log)
	m.Load()
	assert.Equal(t, 2, m.Expect(web, false).Count)
	assert.Empty(t, logged.AllEntries())

	for what, other := range map[string]costs.Machine{"another CPU": {CPU: "6502", Cores: 2}, "more cores": {CPU: "Z80", Cores: 4}} {
		logged.Reset()
		m := New(path, other, log)
		m.Load()
		assert.Equal(t, None, m.Expect(web, false).Basis, what)
		require.Len(t, logged.AllEntries(), 1, what)
		assert.Contains(t, logged.LastEntry().Message, "starting without them", what)
	}
	require.NoError(t, os.WriteFile(path, []byte(`{"version":1,`), 0o600))
	logged.Reset()
	m = New(path, here, log)
	m.Load()
	assert.Empty(t, m.Costs())
	require.Len(t, logged.AllEntries(), 1, "the fault is logged once")
}

func TestAFileThatCannotBeWrittenIsLoggedOnce(t *testing.T) {
	t.Parallel()
	inTheWay := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		log, logged := logtest.NewNullLogger()
		m := New(filepath.Join(inTheWay, "costs.json"), here, log)
		m.Learn(time.Now(), pod("shop", podwatch.Like{}), false, burns(time.Second))
		ctx, stop := context.WithTimeout(t.Context(), 5*writeEvery)
		defer stop()
		require.NoError(t, m.Run(ctx))
		require.Len(t, logged.AllEntries(), 1)
		assert.Contains(t, logged.LastEntry().Message, "a restart loses them")
		assert.Contains(t, fmt.Sprint(logged.LastEntry().Data[logrus.ErrorKey]), inTheWay)
		assert.True(t, m.changed, "the write is tried again")
	})
}

// The daemon may be told to end while it writes, or before it begins to.
func TestWhatIsLearnedBeforeTheEndIsWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "costs.json")
	log, _ := logtest.NewNullLogger()
	m := New(path, here, log)
	m.Learn(time.Now(), pod("shop", podwatch.Like{}), false, burns(time.Second))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, wholefiletest.WithoutSync(func() error { return m.Run(ctx) }))
	assert.FileExists(t, path, "the next daemon does not wait for the disk")
}
