package runtimetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// refuser is a plugin that refuses as long as a test wants, and adds a hook if a test wants that.
type refuser struct {
	mu                 sync.Mutex
	sandboxes, creates int // how many it still refuses
	hook               bool
	asked, askedToMake []time.Time
}

func (r *refuser) RunPodSandbox(context.Context, *api.PodSandbox) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, time.Now())
	if r.sandboxes--; r.sandboxes >= 0 {
		return errors.New("not yet")
	}
	return nil
}

func (r *refuser) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.askedToMake = append(r.askedToMake, time.Now())
	if r.creates--; r.creates >= 0 {
		return nil, nil, errors.New("not yet")
	}
	if !r.hook {
		return nil, nil, nil
	}
	a := &api.ContainerAdjustment{}
	a.AddHooks(&api.Hooks{CreateRuntime: []*api.Hook{{Path: "/hook", Args: []string{"/hook"}}}})
	return a, nil, nil
}

// memoryNode is a runtime and a kubelet in a bubble, with one pod.
type memoryNode struct {
	t       *testing.T
	runtime *runtimetest.Runtime
	kubelet *runtimetest.Kubelet

	mu    sync.Mutex
	pod   *corev1.Pod // with its last status
	seen  []runtimetest.Happening
	at    []time.Duration
	began time.Time
}

// onNode runs a test in a bubble with a node whose only pod does what program says. hook plays the hooks.
func onNode(t *testing.T, r *refuser, policy corev1.RestartPolicy, program func(run int) runtimetest.Program, hook func(context.Context) int, test func(n *memoryNode)) {
	t.Helper()
	spec := corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "app"}}}
	onNodeWith(t, r, runtimetest.Options{}, spec, program, hook, test)
}

// onNodeWith is onNode for any pod, on a runtime with more options.
func onNodeWith(t *testing.T, r *refuser, o runtimetest.Options, spec corev1.PodSpec, program func(run int) runtimetest.Program, hook func(context.Context) int, test func(n *memoryNode)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &memoryNode{t: t, began: time.Now()}
		var err error
		o.Dir, o.InMemory, o.Hook = t.TempDir(), true, func(runc context.Context, _ []string) (int, string) { return hook(runc), "said" }
		n.runtime, err = runtimetest.New(o)
		require.NoError(t, err)
		require.NoError(t, n.runtime.Start())
		conn, err := n.runtime.DialPlugin(t.Context())
		require.NoError(t, err)
		s, err := stub.New(r, stub.WithPluginName("refuser"), stub.WithPluginIdx("10"), stub.WithConnection(conn), stub.WithOnClose(func() {}))
		require.NoError(t, err)
		require.NoError(t, s.Start(t.Context()))
		require.NoError(t, n.runtime.WaitPlugin(t.Context(), "refuser"))
		n.kubelet = runtimetest.NewKubelet(runtimetest.KubeletOptions{
			Runtime: n.runtime, RequestTimeout: 2 * time.Minute, Seed: 1,
			Program: func(_ *corev1.Pod, _ string, run int) runtimetest.Program { return program(run) },
			Report:  func(pod *corev1.Pod) { n.mu.Lock(); defer n.mu.Unlock(); n.pod = pod },
			Gone:    func(*corev1.Pod) {},
			Seen: func(_ *corev1.Pod, what runtimetest.Happening, _ string) {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.seen, n.at = append(n.seen, what), append(n.at, time.Since(n.began))
			},
		})
		n.kubelet.Start()
		n.kubelet.Update(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID("web")},
			Spec:       spec,
		})
		test(n)
		n.kubelet.Kill()
		require.NoError(t, n.runtime.Stop())
		s.Stop()
		s.Wait()
	})
}

func runsForGood(int) runtimetest.Program { return runtimetest.Program{} }

func hookStarts(context.Context) int { return 0 }

// hookWaits is a hook that waits until its runc is gone.
func hookWaits(runc context.Context) int { <-runc.Done(); return 1 }

// status returns the status of the pod's container.
func (n *memoryNode) status() corev1.ContainerStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pod.Status.ContainerStatuses[0]
}

// phase returns the phase of the pod.
func (n *memoryNode) phase() corev1.PodPhase {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pod.Status.Phase
}

// times returns when something happened.
func (n *memoryNode) times(what runtimetest.Happening) (all []time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, one := range n.seen {
		if one == what {
			all = append(all, n.at[i])
		}
	}
	return all
}

func assertBackOff(t *testing.T, d time.Duration) {
	t.Helper()
	assert.GreaterOrEqual(t, d, 10*time.Second)
	assert.LessOrEqual(t, d, 15*time.Second)
}

func TestKubeletAsksAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	r := &refuser{sandboxes: 2, creates: 3}
	onNode(t, r, corev1.RestartPolicyAlways, runsForGood, hookStarts, func(n *memoryNode) {
		time.Sleep(2 * time.Minute)
		asked := n.times(runtimetest.AsksSandbox)
		require.Len(t, asked, 3)
		assertBackOff(t, asked[1]-asked[0])
		assertBackOff(t, asked[2]-asked[1])
		asked = n.times(runtimetest.AsksContainer)
		require.Len(t, asked, 4)
		assert.Equal(t, asked[0], asked[1], "once at once")
		assertBackOff(t, asked[2]-asked[1])
		assertBackOff(t, asked[3]-asked[2])
		assert.NotNil(t, n.status().State.Running)
		assert.Zero(t, n.status().RestartCount, "a refused create leaves no record")
		r.mu.Lock()
		defer r.mu.Unlock()
		assert.Len(t, r.asked, 3, "the plugin sees each attempt")
		assert.Len(t, r.askedToMake, 4)
	})
}

func TestKubeletGivesUpAStartThatTakesTooLong(t *testing.T) {
	t.Parallel()
	onNode(t, &refuser{hook: true}, corev1.RestartPolicyAlways, runsForGood, hookWaits, func(n *memoryNode) {
		time.Sleep(119 * time.Second)
		assert.Equal(t, "ContainerCreating", n.status().State.Waiting.Reason)
		time.Sleep(2 * time.Second)
		assert.Equal(t, "RunContainerError", n.status().State.Waiting.Reason)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, n.status().RestartCount)
	})
}

func TestTheEndOfKubeletEndsWhatItStarts(t *testing.T) {
	t.Parallel()
	for policy, lost := range map[corev1.RestartPolicy]bool{corev1.RestartPolicyAlways: false, corev1.RestartPolicyNever: true} {
		onNode(t, &refuser{hook: true}, policy, runsForGood, hookWaits, func(n *memoryNode) {
			time.Sleep(time.Minute)
			require.Equal(t, 1, n.runtime.Hooks())
			n.kubelet.Kill()
			n.kubelet.Start()
			time.Sleep(10 * time.Second)
			if lost {
				assert.Equal(t, corev1.PodFailed, n.phase())
				return
			}
			assert.EqualValues(t, 1, n.status().RestartCount)
			assert.Equal(t, 1, n.runtime.Hooks(), "the next attempt waits")
		})
	}
}

func TestTheEndOfTheRuntimeMakesANewSandbox(t *testing.T) {
	t.Parallel()
	onNode(t, &refuser{hook: true}, corev1.RestartPolicyNever, runsForGood, hookWaits, func(n *memoryNode) {
		time.Sleep(time.Minute)
		n.runtime.Kill()
		require.NoError(t, n.runtime.Start())
		time.Sleep(time.Minute)
		assert.Len(t, n.times(runtimetest.AsksSandbox), 2)
		assert.EqualValues(t, 1, n.status().RestartCount, "by the log of the one that waited")
		assert.NotNil(t, n.status().State.Running, "no plugin is connected any more")
	})
}

func TestADeadSandboxIsMadeAnew(t *testing.T) {
	t.Parallel()
	onNode(t, &refuser{}, corev1.RestartPolicyAlways, runsForGood, hookStarts, func(n *memoryNode) {
		time.Sleep(time.Minute)
		n.kubelet.LoseSandbox("web")
		time.Sleep(time.Minute)
		assert.Len(t, n.times(runtimetest.AsksSandbox), 2)
		assert.EqualValues(t, 1, n.status().RestartCount)
		assert.NotNil(t, n.status().State.Running)
	})
}

func TestKubeletBacksOffFromAContainerThatExits(t *testing.T) {
	t.Parallel()
	crashes := func(run int) runtimetest.Program {
		if run < 4 {
			return runtimetest.Program{Exits: time.Second, Code: 1}
		}
		return runtimetest.Program{}
	}
	onNode(t, &refuser{}, corev1.RestartPolicyAlways, crashes, hookStarts, func(n *memoryNode) {
		time.Sleep(10 * time.Minute)
		runs := n.times(runtimetest.Runs)
		require.Len(t, runs, 5)
		for i, least := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second} {
			pause := runs[i+1] - runs[i] - time.Second
			assert.GreaterOrEqual(t, pause, least)
			assert.LessOrEqual(t, pause, least+time.Second)
		}
		assert.EqualValues(t, 4, n.status().RestartCount)
		assert.Empty(t, n.times(runtimetest.StartFailed))
	})
}

// kubelet counts the failures from the initial delay on, or once the startup probe has succeeded.
func TestAProbeThatFailsKillsTheContainer(t *testing.T) {
	t.Parallel()
	probe := &corev1.Probe{InitialDelaySeconds: 20, PeriodSeconds: 5, FailureThreshold: 3}
	hangsOnce := func(run int) runtimetest.Program {
		if run == 0 {
			return runtimetest.Program{Ready: time.Hour}
		}
		return runtimetest.Program{Ready: 25 * time.Second}
	}
	for name, c := range map[string]corev1.Container{
		"liveness": {Name: "app", LivenessProbe: probe},
		"startup":  {Name: "app", StartupProbe: probe, LivenessProbe: &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{c}}
			onNodeWith(t, &refuser{}, runtimetest.Options{}, spec, hangsOnce, hookStarts, func(n *memoryNode) {
				time.Sleep(10 * time.Minute)
				runs, kills := n.times(runtimetest.Runs), n.times(runtimetest.ProbeKills)
				require.Len(t, runs, 2)
				require.Len(t, kills, 1)
				assert.Equal(t, 30*time.Second, kills[0]-runs[0], "failures after 20, 25 and 30 s")
				assert.Less(t, runs[1]-kills[0], time.Second, "the first restart is at once")
				assert.EqualValues(t, 1, n.status().RestartCount)
				assert.True(t, n.status().Ready)
			})
		})
	}
}

func TestASidecarStartsBeforeTheNextInitContainer(t *testing.T) {
	t.Parallel()
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app"}},
		InitContainers: []corev1.Container{{Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
	}
	onNodeWith(t, &refuser{creates: 2}, runtimetest.Options{}, spec, runsForGood, hookStarts, func(n *memoryNode) {
		time.Sleep(time.Minute)
		asked, runs := n.times(runtimetest.AsksContainer), n.times(runtimetest.Runs)
		require.Len(t, asked, 4, "the app waits for the sidecar, which is refused twice")
		require.Len(t, runs, 2)
		assert.Equal(t, asked[2], runs[0])
		assert.GreaterOrEqual(t, runs[1]-runs[0], time.Second)
		assert.Equal(t, corev1.PodRunning, n.phase())
	})
}

// NRI takes four pods at a time where fewer are left. TestNRIListsWhatTheRuleAccepts, of the daemon, tries its own code.
func TestALongListEndsTheRuntime(t *testing.T) {
	t.Parallel()
	large := corev1.Container{Env: []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("x", 1<<20)}}}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}
	for i := range 8 {
		large.Name = fmt.Sprintf("app%d", i)
		spec.Containers = append(spec.Containers, large)
	}
	ended := make(chan any, 1)
	onNodeWith(t, &refuser{}, runtimetest.Options{Ended: func(why any) { ended <- why }}, spec, runsForGood, hookStarts, func(n *memoryNode) {
		time.Sleep(time.Minute)
		_, err := n.runtime.DropPlugins()
		require.NoError(t, err)
		conn, err := n.runtime.DialPlugin(n.t.Context())
		require.NoError(t, err)
		again, err := stub.New(&refuser{}, stub.WithPluginName("again"), stub.WithPluginIdx("10"), stub.WithConnection(conn), stub.WithOnClose(func() {}))
		require.NoError(t, err)
		_ = again.Start(n.t.Context()) // the runtime ends meanwhile
		assert.Contains(t, fmt.Sprint(<-ended), "slice bounds out of range")
		again.Stop()
	})
}

// Another plugin, which is asked later, rejects what this one allowed.
func TestAnotherPluginRejects(t *testing.T) {
	t.Parallel()
	rejections := 2
	o := runtimetest.Options{Rejects: func(*api.PodSandbox, *api.Container) error {
		if rejections--; rejections >= 0 {
			return errors.New("not here")
		}
		return nil
	}}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app"}}}
	r := &refuser{}
	onNodeWith(t, r, o, spec, runsForGood, hookStarts, func(n *memoryNode) {
		time.Sleep(time.Minute)
		assert.Len(t, n.times(runtimetest.CreateRefused), 2)
		assert.Len(t, r.askedToMake, 3)
		assert.NotNil(t, n.status().State.Running)
	})
}

// A plugin that waits in a handler holds up the node, and loses its connection after the time-out.
func TestInMemoryALateAnswerDisconnectsThePlugin(t *testing.T) {
	t.Parallel()
	onNode(t, &refuser{}, corev1.RestartPolicyAlways, runsForGood, hookStarts, func(n *memoryNode) {
		time.Sleep(time.Minute)
		dropped, err := n.runtime.DropPlugins()
		require.NoError(t, err)
		assert.Equal(t, 1, dropped)
		require.NoError(t, n.runtime.WaitPluginGone(t.Context(), "refuser"))
	})
}
