package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// bubble is a node in a bubble of testing/synctest: the whole daemon as Run wires it, with the real protocols of NRI and of
// the gate, beside a runtime, a kubelet and an API server in memory. Its clock goes on when every goroutine waits, so hours
// take seconds.
type bubble struct {
	t          testing.TB
	shape      *shapes.Shape
	options    Options
	sockets    *memorySockets
	runtime    *runtimetest.Runtime
	kubelet    *runtimetest.Kubelet
	pods       *podStore
	clients    clients
	later      []func() // what is done once the API server is back
	generation int64    // of the PacemakerConfig
	host       *host
	folder     atomic.Int64 // of the CNI configurations: how often it changed
	notes      sync.Map     // since when a pod waits that had to leave the waiting room
	seen       *judge
	asked      time.Time // when the daemon was asked last what it says
	log        *logrus.Logger

	// The present daemon.
	d    *Daemon
	stop func()
}

// runShape runs a shape in a bubble, and returns what was seen. misled, if it is not nil, changes what the judge believes.
func runShape(t *testing.T, s *shapes.Shape, misled func(*judge)) (seen *judge) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, s)
		if misled != nil {
			misled(b.seen)
		}
		b.live()
		b.die()
		seen = b.seen
	})
	return seen
}

func newBubble(t *testing.T, s *shapes.Shape) *bubble {
	t.Helper()
	dir, err := os.MkdirTemp("", "bubble")
	require.NoError(t, err)
	b := &bubble{
		t: t, shape: s, pods: newPodStore(), seen: newJudge(s), log: logrus.New(), generation: 1,
		sockets: &memorySockets{listeners: map[string]*runtimetest.Listener{}, locked: map[string]bool{}},
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	b.log.SetOutput(io.Discard)
	b.log.AddHook(b.seen)
	if os.Getenv("SHAPES_LOG") != "" {
		b.log.SetOutput(t.Output())
		b.log.SetLevel(logrus.DebugLevel)
	}
	b.options = Options{
		NodeName: "node", InCluster: true, NRIIndex: "05", Namespace: "pod-pacemaker", RunDir: filepath.Join(dir, "run"), StateDir: filepath.Join(dir, "state"),
		ContainerdState: filepath.Join(dir, "containerd"), GatePath: hookPath, GateTimeout: s.GateTimeout(), Gate: waiting.GateAuto, CNI: cni.UseAuto, RefuseAt: waiting.RefuseAuto,
		Hold: 200 * time.Millisecond, NRISocket: filepath.Join(dir, "nri.sock"), ProcRoot: filepath.Join(dir, "proc"), CgroupRoot: filepath.Join(dir, "cgroup"), Log: b.log,
	}
	b.writeHost()
	if s.Standalone {
		b.options.InCluster, b.options.ConfigFile, b.seen.blind = false, filepath.Join(dir, "config.yaml"), true
		if s.GateAlways {
			b.options.Gate = waiting.GateAlways
		}
		b.writeConfig(s.Limits)
	}
	if s.Room {
		b.writeCNI(filepath.Join(dir, "cni"))
	}
	require.NoError(t, os.MkdirAll(b.options.Bundles(), 0o700))
	b.runtime, err = runtimetest.New(runtimetest.Options{Dir: dir, InMemory: true, Version: s.Containerd, Hook: b.hook, Network: b.network, Bundles: b.options.Bundles(), Rejects: b.seen.rejects, Ended: func(why any) {
		b.seen.complainf(runtimeLives, "%v", why)
		time.Sleep(time.Second)
		b.startRuntime()
	}})
	require.NoError(t, err)
	b.seen.runtime = b.runtime
	b.kubelet = runtimetest.NewKubelet(runtimetest.KubeletOptions{
		Runtime: b.runtime, RequestTimeout: s.RequestTimeout, Seed: s.Seed, Program: s.Program, Seen: b.seen.happens,
		Report: func(pod *corev1.Pod) {
			b.seen.reports(pod)
			b.pods.put(pod, func(stored *corev1.Pod) { stored.Status = pod.Status })
		},
		Gone: func(pod *corev1.Pod) { b.pods.remove(pod) },
	})
	fake := kubefake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "node"}})
	configured := []kuberuntime.Object{b.config(s.Limits)}
	if s.Running > 0 {
		policy := s.StartPolicy()
		policy.SetUID("policy")
		configured = append(configured, policy)
	}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(kuberuntime.NewScheme(), map[schema.GroupVersionResource]string{
		v1alpha1.Resource: v1alpha1.Kind + "List", v1alpha1.NodeResource: v1alpha1.NodeKind + "List", v1alpha1.PolicyResource: v1alpha1.PolicyKind + "List",
	}, configured...)
	away := func(a clienttesting.Action) (bool, kuberuntime.Object, error) {
		b.seen.writes(a)
		return b.pods.isAway(), nil, errAway
	}
	fake.PrependReactor("*", "*", away)
	dynamic.PrependReactor("*", "*", away)
	b.clients = clients{kube: bubbleAPI{kubetest.Of(fake), b.pods, b.seen.tells}, dynamic: dynamic}
	return b
}

// writeHost writes what the daemon reads of the host: a machine with pods whose usage cannot be read, so they count as
// making progress, and a first process of every sandbox that is as old as the bubble.
func (b *bubble) writeHost() {
	for name, content := range map[string]string{
		"sys/kernel/random/boot_id": "bubble\n",
		"4194304/stat":              "4194304 (pause) S 1" + strings.Repeat(" 0", 48) + "\n",
	} {
		path := filepath.Join(b.options.ProcRoot, name)
		require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(b.t, os.WriteFile(path, []byte(content), 0o600))
	}
	b.host = newHost(b.t, b.options.ProcRoot, b.shape.CPUs())
}

// startRuntime starts the runtime. Its socket is only a file, whose age tells which sandboxes are older than the runtime.
func (b *bubble) startRuntime() {
	_ = b.runtime.Start() // it may run already
	require.NoError(b.t, os.WriteFile(b.options.NRISocket, nil, 0o600))
	require.NoError(b.t, os.Chtimes(b.options.NRISocket, time.Now(), time.Now().Add(-time.Second)))
}

// startDaemon starts a daemon.
func (b *bubble) startDaemon() {
	if b.d != nil {
		return
	}
	t := defaultTuning()
	t.listen = b.sockets.serve
	t.dial = func(ctx context.Context, _ string) (conn net.Conn, err error) { return b.runtime.DialPlugin(ctx) }
	api, file := &b.clients, crd.Documents{}
	if b.shape.Standalone {
		var err error
		if file, err = crd.Load(b.options.ConfigFile); err != nil { // it ends at once
			require.ErrorIs(b.t, err, crd.ErrInvalid)
			return
		}
		api = nil
	}
	d := newDaemon(b.options, cores.Of(b.shape.CPUs()), file, api, t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	b.d = d
	b.stop = func() {
		cancel()
		require.NoError(b.t, <-done)
	}
	b.seen.daemonIs(true)
}

func (b *bubble) stopDaemon() {
	if b.d == nil {
		return
	}
	b.seen.daemonIs(false)
	b.stop()
	b.d = nil
}

// live takes the steps of the shape, and waits until every pod is where it should be, or its time is over.
func (b *bubble) live() {
	b.startRuntime()
	b.startDaemon()
	time.Sleep(settled) // it connects: what starts before is unpaced
	b.seen.begins()
	b.kubelet.Start()
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { b.seen.watch(stop) })
	if b.shape.Measured() {
		watching.Go(func() { b.loads(stop) })
	}
	for _, step := range b.shape.Steps() {
		for left := step.At - time.Since(b.seen.began); left > 0; left = step.At - time.Since(b.seen.began) {
			time.Sleep(min(left, asksEvery))
			b.asks()
		}
		b.seen.tracef("%s", step.Text)
		b.do(step)
	}
	for end := time.Now().Add(endsWithin(b.shape)); time.Now().Before(end) && !b.seen.everyPodIsWell(); {
		b.asks()
		time.Sleep(10 * time.Second)
	}
	b.seen.complainUnlessWell()
	b.seen.last = time.Since(b.seen.began)
	close(stop)
	watching.Wait()
}

// do takes a step.
func (b *bubble) do(step shapes.Step) {
	f := step.Fault
	if f == nil {
		if step.Ends {
			b.deletePod(step.Pod.Object())
		} else {
			b.addPod(step.Pod.Object())
		}
		return
	}
	b.seen.faulted(f.Kind)
	switch f.Kind {
	case shapes.DaemonRestarts:
		if step.Ends {
			b.startDaemon()
		} else {
			b.stopDaemon()
		}
	case shapes.ConnectionDrops:
		_, _ = b.runtime.DropPlugins() // the runtime may be down
	case shapes.KubeletRestarts:
		if step.Ends {
			b.kubelet.Start()
		} else {
			b.kubelet.Kill()
		}
	case shapes.RuntimeRestarts:
		if step.Ends {
			b.startRuntime()
		} else {
			b.runtime.Kill()
		}
	case shapes.APIAway:
		b.apiIs(!step.Ends)
	case shapes.ClockIsSet:
		b.runtime.SetClock(f.Step)
	case shapes.CNIChanges:
		b.changeCNI()
	case shapes.SandboxDies:
		b.kubelet.LoseSandbox(b.seen.youngest())
	case shapes.StateUnusable:
		b.stateIs(step.Ends)
	case shapes.FileBroken:
		b.breakFile(step.Ends)
	case shapes.NodeIsBusy:
		b.host.bears(*f, !step.Ends)
	case shapes.ConfigChanges:
		b.reconfigure(f.Limits)
	}
}

// endsWithin is how long it may take until every pod is where it should be, once all has happened: as if one pod started
// after the other, twice, with kubelet's back-offs, and a token of the rate limit for each.
func endsWithin(s *shapes.Shape) time.Duration {
	sum := 30 * time.Minute
	for i := range s.Pods {
		p := &s.Pods[i]
		sum += 2*(p.Work()+p.Pull) + time.Minute + 2*s.Limits.FillFactor + time.Duration(p.Fails())*6*time.Minute + 2*time.Duration(p.Hangs)*max(p.Startup.KillsWithin(), p.Liveness.KillsWithin())
		for _, f := range s.Faults {
			sum += 2 * f.Limits.FillFactor
		}
		if s.Measured() { // the load average forgets a start slowly
			sum += loadShownAfter
		}
	}
	return sum
}

// die deletes what is left, ends every part, and complains of what remains.
func (b *bubble) die() {
	b.seen.windsDown()
	for _, pod := range b.pods.all() {
		b.deletePod(pod)
	}
	for end := time.Now().Add(endsWithin(b.shape)); time.Now().Before(end) && len(b.pods.all()) > 0; {
		time.Sleep(10 * time.Second)
	}
	time.Sleep(time.Minute)
	if b.shape.Standalone { // nothing tells the daemon that a refused pod was deleted: it forgets that after ten minutes
		time.Sleep(11 * time.Minute)
	}
	for _, pod := range b.pods.all() {
		b.seen.complainf(nothingLeft, "pod %s is still there", pod.Name)
	}
	if s := b.d.starts.Snapshot(time.Now()); len(s.Waiting)+len(s.Starting) > 0 {
		b.seen.complainf(nothingLeft, "%d pods wait and %d hold a slot", len(s.Waiting), len(s.Starting))
	}
	if gate, room := b.d.waiting.Gate.Waiters(), len(b.d.waiting.Room.Pods()); gate+room+b.runtime.Hooks() > 0 {
		b.seen.complainf(nothingLeft, "%d hooks wait at the gate, %d pods in the room, and %d hooks run", gate, room, b.runtime.Hooks())
	}
	b.stopDaemon()
	b.host.close()
	b.kubelet.Kill()
	require.NoError(b.t, b.runtime.Stop())
	time.Sleep(time.Minute)
	synctest.Wait()
	if left := othersInBubble(); left != "" {
		b.seen.complainf(nothingLeft, "goroutines: %s", left)
		fmt.Fprintf(os.Stderr, "%s\n", left) // the bubble cannot end, and panics
	}
}

// stateIs makes the daemon's state folder unusable, or gives it back as it was.
func (b *bubble) stateIs(usable bool) {
	b.seen.mu.Lock()
	is := !b.seen.stateless
	b.seen.stateless = !usable
	b.seen.mu.Unlock()
	folder, aside := b.options.StateDir, b.options.StateDir+".aside"
	if is == usable {
		return
	}
	if usable {
		require.NoError(b.t, os.Remove(folder))
		require.NoError(b.t, os.Rename(aside, folder))
		return
	}
	require.NoError(b.t, os.MkdirAll(folder, 0o700)) // the daemon may have kept nothing yet
	require.NoError(b.t, os.Rename(folder, aside))
	require.NoError(b.t, os.WriteFile(folder, nil, 0o600))
}

// apiIs takes the API server away, or brings it back. What is asked of it meanwhile is done then.
func (b *bubble) apiIs(away bool) {
	b.pods.setAway(away)
	b.seen.blindIs(away)
	if away {
		return
	}
	for _, do := range b.later {
		time.Sleep(time.Millisecond) // the order of what happens at the same moment is none of the run
		do()
	}
	b.later = nil
}

// postpone reports whether the API server is away. Then something is done once it is back.
func (b *bubble) postpone(do func()) bool {
	away := b.pods.isAway()
	if away {
		b.later = append(b.later, do)
	}
	return away
}

// addPod creates a pod.
func (b *bubble) addPod(pod *corev1.Pod) {
	if b.postpone(func() { b.addPod(pod) }) {
		return
	}
	b.seen.arrives(pod)
	b.kubelet.Update(b.pods.put(pod, func(*corev1.Pod) {}))
}

// deletePod requests the deletion of a pod.
func (b *bubble) deletePod(pod *corev1.Pod) {
	if b.postpone(func() { b.deletePod(pod) }) || !b.pods.has(pod.UID) {
		return
	}
	now, grace := metav1.Now(), int64(30)
	b.seen.deletes(pod)
	b.kubelet.Update(b.pods.put(pod, func(stored *corev1.Pod) {
		stored.DeletionTimestamp, stored.DeletionGracePeriodSeconds = &now, &grace
	}))
}

// reconfigure changes the PacemakerConfig.
func (b *bubble) reconfigure(l shapes.Limits) {
	if b.postpone(func() { b.reconfigure(l) }) {
		return
	}
	b.seen.configures(l)
	if b.shape.Standalone {
		b.seen.faulted(shapes.DaemonRestarts)
		b.stopDaemon()
		b.writeConfig(l)
		b.startDaemon()
		return
	}
	b.generation++
	_, err := b.clients.dynamic.Resource(v1alpha1.Resource).Update(context.Background(), b.config(l), metav1.UpdateOptions{})
	require.NoError(b.t, err)
}

// writeConfig writes the file of a standalone daemon.
func (b *bubble) writeConfig(l shapes.Limits) {
	documents := []*unstructured.Unstructured{l.Object(1)}
	if b.shape.Running > 0 {
		documents = append(documents, b.shape.StartPolicy())
	}
	var file []byte
	for _, one := range documents {
		text, err := one.MarshalJSON()
		require.NoError(b.t, err)
		file = append(append(file, text...), "\n---\n"...)
	}
	require.NoError(b.t, os.WriteFile(b.options.ConfigFile, file, 0o600))
}

// breakFile restarts a standalone daemon, whose file is broken now, or mended.
func (b *bubble) breakFile(mended bool) {
	b.stopDaemon()
	if mended {
		b.writeConfig(b.seen.present())
	} else {
		require.NoError(b.t, os.WriteFile(b.options.ConfigFile, []byte("spec: ["), 0o600))
	}
	b.startDaemon()
}

// config returns the PacemakerConfig as the API server has it.
func (b *bubble) config(l shapes.Limits) *unstructured.Unstructured {
	u := l.Object(b.generation)
	u.SetUID("config")
	return u
}

var bubbleOf = regexp.MustCompile(`^goroutine \d+ .*(synctest bubble \d+)`)

// othersInBubble returns the stacks of the other goroutines of this bubble.
func othersInBubble() string {
	own := make([]byte, 1<<10)
	own = own[:runtime.Stack(own, false)]
	name := bubbleOf.FindSubmatch(own)
	if name == nil {
		return ""
	}
	all := make([]byte, 8<<20)
	all = all[:runtime.Stack(all, true)]
	var left []string
	for i, one := range bytes.Split(all, []byte("\n\n")) {
		header, _, _ := bytes.Cut(one, []byte("\n"))
		if i > 0 && bytes.Contains(header, append(bytes.Clone(name[1]), 0x5d)) && !bytes.Contains(header, []byte("[synctest.Run")) && !bytes.Contains(one, []byte("synctest.testingSynctestTest(")) {
			left = append(left, string(one))
		}
	}
	return strings.Join(left, "\n\n")
}
