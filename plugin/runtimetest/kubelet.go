package runtimetest

import (
	"context"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kubelet is a kubelet in memory: it runs the pods of its node on a Runtime that has Options.InMemory, as kubelet 1.36
// does. Each pod has a worker, which does one thing at a time: a pod whose container waits in a hook gets no further
// container, and is not ended before that wait is over.
//
// What it repeats, of pkg/kubelet and from measurements on a node:
//
//   - A request to the runtime may take RequestTimeout, that for a sandbox twice as long. A request that kubelet gives up,
//     or that its own end interrupts, ends the runc of a container that is being started: the container is Exited, 128.
//   - After a failure the worker tries again in 10 to 15 s, but after the first refused create of a container at once.
//   - An exit is noticed within a second. A container that exited starts again at once, then after 10 s, 20 s and so on up to 5 min
//     (CrashLoopBackOff). A container whose start failed counts as exited.
//   - A restart is counted for each container but the first, also in a new sandbox: kubelet sees the record of the one before,
//     or its log. A refused create leaves neither.
//   - Init containers run one after the other; app containers are started in the order of the spec, each after the start of
//     the one before has succeeded or failed.
//   - After the end of the runtime, a container that was being started gets a new sandbox. So does a pod with restartPolicy
//     Always whose sandbox dies: its containers are killed, and start again from the first init container.
//
// A probe comes at each full period after the container runs, not before its initial delay, and succeeds once the program is
// ready. Those for readiness and liveness begin when the one for the startup has succeeded. One for startup or liveness that
// fails as often as it may has the container killed; it then counts as exited. A sidecar starts among the init containers;
// the next one starts when it runs, a second later.
type Kubelet struct {
	o KubeletOptions

	mu sync.Mutex
	// guarded by mu
	workers map[types.UID]*worker
	end     context.CancelFunc // nil while it does not run
	life    context.Context
	running *sync.WaitGroup // the workers of this life
}

// KubeletOptions are the options of a Kubelet. All are required.
type KubeletOptions struct {
	Runtime        *Runtime
	RequestTimeout time.Duration
	// Seed decides the jitter of all times.
	Seed uint64
	// Program returns what a container does. run counts its processes, from 0.
	Program func(pod *corev1.Pod, container string, run int) Program
	// Report gets each new status of a pod, and Gone a deleted pod that has nothing left. They must not change the pod
	// or call the Kubelet, and must not block.
	Report, Gone func(*corev1.Pod)
	// Seen gets what happens to a pod, in words that do not change between versions. It must not block.
	Seen func(pod *corev1.Pod, what Happening, container string)
}

// Program is what the process of a container does.
type Program struct {
	// Pull is how long the image takes, if it is not there yet.
	Pull time.Duration
	// Ready is how long the process takes until a probe succeeds, which then stays so.
	Ready time.Duration
	// Exits is when the process exits by itself with Code, or 0 if it does not.
	Exits time.Duration
	Code  int
}

// Happening is what happens to a pod.
type Happening string

// What happens to a pod.
const (
	AsksSandbox     Happening = "asks for a sandbox"
	SandboxRefused  Happening = "sandbox refused"
	AsksContainer   Happening = "asks for a container"
	CreateRefused   Happening = "container refused"
	Starts          Happening = "starts a container"
	StartFailed     Happening = "start failed"
	Runs            Happening = "runs"
	Exits           Happening = "exited"
	Ready           Happening = "ready"
	ProbeKills      Happening = "a probe kills"
	RestartsCounted Happening = "restart counted"
	BacksOff        Happening = "backs off"
	SandboxDied     Happening = "sandbox died"
	Over            Happening = "over"
	Removed         Happening = "removed"
)

// NewKubelet returns a kubelet that does not run.
func NewKubelet(o KubeletOptions) *Kubelet {
	return &Kubelet{o: o, workers: map[types.UID]*worker{}}
}

// Start begins a life of the kubelet. It has no effect while it runs.
func (k *Kubelet) Start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end != nil {
		return
	}
	k.life, k.end = context.WithCancel(context.Background())
	k.running = &sync.WaitGroup{}
	for _, uid := range slices.Sorted(maps.Keys(k.workers)) {
		k.runLocked(k.workers[uid], true)
	}
}

// Kill ends the life of the kubelet, and with it its requests. Pods and containers stay. It returns when all requests
// have returned.
func (k *Kubelet) Kill() {
	k.mu.Lock()
	end, running := k.end, k.running
	k.end = nil
	k.mu.Unlock()
	if end != nil {
		end()
		running.Wait()
	}
}

// Update tells the kubelet of a pod, or that its deletion was requested.
func (k *Kubelet) Update(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[pod.UID]; w != nil {
		w.update(pod)
		return
	}
	w := newWorker(k, pod, k.random(pod.UID, ""))
	k.workers[pod.UID] = w
	if k.end != nil {
		k.runLocked(w, false)
	}
}

// LoseSandbox kills the first process of a pod's sandbox, if it has one and restartPolicy Always.
func (k *Kubelet) LoseSandbox(uid types.UID) {
	k.mu.Lock()
	w := k.workers[uid]
	k.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	w.dies = w.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
	w.mu.Unlock()
	w.wakeUp()
}

// runLocked runs a worker. A kubelet that has just started takes up to two seconds until it looks at its pods.
func (k *Kubelet) runLocked(w *worker, first bool) {
	ctx, begins := k.life, time.Duration(0)
	if first {
		begins = w.jitter(time.Second, 1)
	}
	k.running.Go(func() {
		if pause(ctx, begins) && w.run(ctx) {
			k.mu.Lock()
			delete(k.workers, w.pod.UID)
			k.mu.Unlock()
			k.o.Gone(w.pod)
		}
	})
}

// random returns the random numbers of a pod, or of something in it, which do not depend on what others do at the same
// moment.
func (k *Kubelet) random(uid types.UID, what string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(uid) + what)) // it never fails
	return rand.New(rand.NewPCG(k.o.Seed, h.Sum64()))
}
