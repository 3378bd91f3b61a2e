package starts

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// burner is a made-up /proc of the process that all pods have.
type burner struct {
	n    *node
	root string
	used int // in ticks of 10 ms
}

// withProc makes the node measure a made-up /proc.
func withProc(root string) func(*Options) {
	return func(o *Options) { o.Roots = usage.Roots{Proc: root, Cgroup: "/nowhere"} }
}

// burns lets the process burn CPU for some seconds.
func (b *burner) burns(seconds int) {
	b.n.t.Helper()
	for range seconds {
		b.used += 100
		b.idles(1)
	}
}

// idles lets some seconds pass in which the process uses no CPU.
func (b *burner) idles(seconds int) {
	b.n.t.Helper()
	proc(b.n.t, b.root, strconv.Itoa(b.used)+" 0")
	for range seconds {
		b.n.passes(time.Second)
	}
}

func TestWithoutTheKubeletsReportAStartEndsWhenThePodIsQuiet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		option func(*Options)
		pod    func(*node) *testPod
	}{
		"standalone":             {standalone, func(n *node) *testPod { return n.stranger("jvm") }},
		"an unknown pod":         {func(*Options) {}, func(n *node) *testPod { return n.stranger("jvm") }},
		"the API server is away": {func(*Options) {}, func(n *node) *testPod { n.watch.away = true; return n.pod("jvm") }},
	} {
		root := t.TempDir()
		onNode(t, func(_ *testing.T, n *node) {
			b := &burner{n: n, root: root}
			b.idles(1)
			p := c.pod(n).runs()
			p.starts("app")
			b.burns(60)
			p.is(throttle.Starting, reasons.WithinLimits, name)
			b.idles(1)
			p.is(throttle.Starting, reasons.WithinLimits, name+": it was quiet for a second")
			b.idles(2)
			p.is(throttle.Started, reasons.Inferred, name)
		}, c.option, withProc(root))
	}
}

// An API server that restarts ends each watch, and another one answers a moment later. It does not know less of the pods.
func TestAWatchThatBreaksOffEndsNoStart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onNode(t, func(_ *testing.T, n *node) {
		b := &burner{n: n, root: root}
		p := n.pod("idler").runs()
		p.starts("app")
		b.idles(60)
		p.is(throttle.Starting, reasons.WithinLimits)
		n.watch.away, n.watch.lost = true, time.Now()
		b.idles(4)
		p.is(throttle.Starting, reasons.WithinLimits, "the watch may be back soon")
		n.watch.away = false
		b.idles(60)
		p.is(throttle.Starting, reasons.WithinLimits)
		n.watch.away, n.watch.lost = true, time.Now()
		b.idles(6)
		p.is(throttle.Started, reasons.Inferred)
	}, withProc(root))
}

func TestAPodWhoseCPUUseCannotBeReadEndsByTime(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.stranger("blind").runs()
		p.mayStart("app")
		n.passes(time.Minute)
		p.is(throttle.Starting, reasons.WithinLimits, "nothing runs")
		p.begins("app")
		n.passes(n.o.Timing.RunFor - 1)
		p.is(throttle.Starting, reasons.WithinLimits)
		n.passes(1)
		p.is(throttle.Started, reasons.Inferred)
	}, standalone)
}

func TestAnEarlierExitDoesNotEndARestart(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.stranger("crashes").runs()
		p.starts("app")
		p.exits("app")
		n.passes(time.Minute)
		p.is(throttle.Started, reasons.Completed)
		p.mayStart("app") // its process does not run yet
		n.passes(time.Minute)
		p.is(throttle.Starting, reasons.WithinLimits, "the exit belongs to the earlier start")
		p.begins("app")
		n.passes(time.Minute)
		p.is(throttle.Started, reasons.Inferred)
	}, standalone)
}

func TestAStartThatOnlyWaitsLendsItsSlot(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onNode(t, func(t *testing.T, n *node) {
		b := &burner{n: n, root: root}
		b.idles(1)
		p, next := n.occupies("jvm"), n.pod("next").runs()
		next.waits("app")
		b.burns(60)
		assert.Zero(t, p.view().StalledSince, "the pod burns CPU")
		last := time.Now()
		b.idles(6)
		assert.WithinRange(t, p.view().StalledSince, last.Add(-time.Second), last.Add(time.Second))
		next.is(throttle.Waiting, reasons.Concurrency)
		b.idles(5)
		next.is(throttle.Starting, "", "ten seconds without progress")
		p.is(throttle.Starting, reasons.WithinLimits)
	}, withProc(root))
}

// Where only a policy holds pods, too.
func TestAStartThatOnlyWaitsLendsTheStartOfItsGroup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		n.enforce(t, "{selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}}")
		b := &burner{n: n, root: root}
		b.idles(1)
		client := n.pod("client", factsOf(nil, nil)).runs()
		client.starts("app")
		database := n.pod("database", factsOf(nil, nil)).runs()
		database.waits("app")
		database.is(throttle.Waiting, reasons.PolicyStarting)
		b.idles(20)
		database.is(throttle.Starting, "", "ten seconds without progress")
		client.is(throttle.Starting, reasons.WithinLimits)
	}, withProc(root))
}

// A start without a slot counts for the policies as well.
func TestAnExemptStartThatOnlyWaitsLendsTheStartOfItsGroup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, daemonSetsExempt, oneSlot)
		n.enforce(t, "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {starting: {pods: 1}}}")
		b := &burner{n: n, root: root}
		b.idles(1)
		holder, agent := n.occupies("holder"), n.pod("agent", isDaemon, factsOf(ofT1, nil)).runs()
		agent.starts("app")
		assert.False(t, agent.view().Slot)
		holder.getsReady()
		next := n.pod("next", factsOf(ofT1, nil)).runs()
		next.waits("app")
		next.is(throttle.Waiting, reasons.PolicyStarting)
		b.idles(20)
		next.is(throttle.Starting, "", "ten seconds without progress")
	}, withProc(root))
}

// Progress counts also while no pod waits.
func TestAStallEndsWhileNoPodWaits(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onNode(t, func(t *testing.T, n *node) {
		b := &burner{n: n, root: root}
		b.idles(1)
		p, first := n.occupies("jvm"), n.pod("first").runs()
		first.waits("app")
		b.idles(8)
		assert.NotZero(t, p.view().StalledSince)
		first.told(func(pod *podwatch.Pod) { pod.Deleting = true })
		b.burns(60)
		last := time.Now()
		b.idles(6)
		n.pod("second").runs().waits("app")
		b.idles(1)
		assert.WithinRange(t, p.view().StalledSince, last.Add(-time.Second), last.Add(time.Second))
	}, withProc(root))
}

// A container is progress. Otherwise, when the app of one of many idle pods comes, the next and larger loan
// could be due before the app is measured.
func TestAContainerThatBeginsIsProgress(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for file, text := range map[string]string{
		"cgroup.controllers": "cpu io memory\n", "io.stat": "8:0 rbytes=1 wbytes=1\n",
		"pod/cpu.stat": "usage_usec 100000\n", "pod/io.stat": "", "pod/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
	}
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, func(o *Options) { o.Roots = usage.Roots{Proc: "/nowhere", Cgroup: root} })
		p := n.pod("idle", withInit)
		p.sandbox.Linux = &api.LinuxPodSandbox{CgroupParent: "/pod"}
		p.runs().starts("init")
		n.pod("waits").runs().waits("app")
		began := time.Now()
		n.passes(8 * time.Second)
		require.WithinDuration(t, began, p.view().StalledSince, 2*time.Second)
		p.exits("init")
		n.passes(time.Second)
		p.starts("init-2")
		began = time.Now()
		n.passes(time.Second)
		assert.WithinDuration(t, began, p.view().StalledSince, 10*time.Millisecond)
		p.is(throttle.Starting, reasons.WithinLimits)
	})
}
