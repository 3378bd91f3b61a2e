package runtimetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Times of kubelet.
const (
	backOffPeriod   = 10 * time.Second // after a failure, up to a half longer
	resyncPeriod    = time.Minute
	relistPeriod    = time.Second // within which it notices what the runtime does by itself
	crashBackOff    = 10 * time.Second
	crashBackOffMax = 5 * time.Minute
	aMoment         = 20 * time.Millisecond // between a container that is killed and the next
	gracePeriod     = 30 * time.Second      // of a container that is killed
	crashForgotten  = 2 * crashBackOffMax
)

// worker does what one pod needs. Its sandbox and containers outlive a kubelet, as those of the runtime do.
type worker struct {
	k    *Kubelet
	wake chan struct{}

	mu sync.Mutex
	// guarded by mu
	pod        *corev1.Pod // with its last status
	random     *rand.Rand
	containers map[string]*record
	dies       bool // the first process of its sandbox was killed

	// Used by the worker's goroutine alone.
	sandbox   *Pod
	triedOnce map[string]bool // containers whose create was refused once in this life
	turn      time.Duration   // of this pod, among those that kubelet syncs at the same moment
	removed   bool
}

// record is what kubelet knows of a container of the spec. The worker's mutex guards it.
type record struct {
	container *Container // the latest; nil if there was none
	runs      int        // processes so far
	made      int        // containers so far, in all sandboxes
	started   time.Time
	exited    time.Time // zero if it was not started, or runs
	code      int
	failed    string // why the start of the latest failed
	waiting   string // a reason of kubelet
	message   string
	ready     bool
	pulled    bool
	fails     bool // a probe failed for good: it is to be killed

	backOff     time.Duration
	backOffFrom time.Time
}

func newWorker(k *Kubelet, pod *corev1.Pod, random *rand.Rand) *worker {
	w := &worker{k: k, wake: make(chan struct{}, 1), pod: pod.DeepCopy(), random: random, containers: map[string]*record{}}
	for _, c := range containersOf(pod) {
		w.containers[c.Name] = &record{waiting: "ContainerCreating"}
	}
	return w
}

// containersOf returns the containers of the spec, in the order in which they are started.
func containersOf(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod.DeletionTimestamp, w.pod.DeletionGracePeriodSeconds = pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	w.mu.Unlock()
	w.wakeUp()
}

func (w *worker) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// jitter returns d, or up to a share longer.
func (w *worker) jitter(d time.Duration, share float64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return d + time.Duration(w.random.Float64()*share*float64(d))
}

// run works until the life of the kubelet is over, or returns true when the pod was deleted and nothing of it is left.
func (w *worker) run(ctx context.Context) (gone bool) {
	w.triedOnce = map[string]bool{}
	w.turn = time.Duration(w.k.random(w.pod.UID, "/turn").Int64N(int64(aMoment)))
	var followers sync.WaitGroup
	defer followers.Wait()
	life, end := context.WithCancel(ctx)
	defer end()
	for name, r := range w.containers {
		if w.runsNow(r) {
			followers.Go(func() { w.follow(life, name, r.container, w.program(name, r.runs-1)) })
		}
	}
	for {
		next, err := w.sync(life, &followers)
		switch {
		case w.removed:
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errAtOnce):
			next = 0
		case err != nil:
			next = w.jitter(backOffPeriod, 0.5)
		case next == 0:
			next = w.jitter(resyncPeriod, 0.5)
		default: // pods whose back-offs end at the same moment come one after the other
			next += w.turn
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-w.wake:
			for err != nil && !w.deleting() { // kubelet keeps to its back-off, except for a deletion
				select {
				case <-timer.C:
					err = nil
				case <-w.wake:
				case <-ctx.Done():
					err = nil
				}
			}
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

func (w *worker) deleting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod.DeletionTimestamp != nil
}

func (w *worker) runsNow(r *record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.container != nil && !r.started.IsZero() && r.exited.IsZero()
}

func (w *worker) program(name string, run int) Program { return w.k.o.Program(w.pod, name, run) }

func (w *worker) seen(what Happening, container string) { w.k.o.Seen(w.pod, what, container) }

// errAtOnce means that the worker tries again now.
var errAtOnce = errors.New("again at once")

// sync brings the pod nearer to what it should be. It returns when to do so again at the latest; 0 means after the usual
// time.
func (w *worker) sync(ctx context.Context, followers *sync.WaitGroup) (next time.Duration, err error) {
	defer w.report()
	switch {
	case w.deleting():
		return 0, w.terminate(ctx, true)
	case w.over():
		return 0, w.terminate(ctx, false)
	case w.sandboxDied():
		w.seen(SandboxDied, "")
		err := w.sandbox.Stop(ctx)
		w.lostSandbox()
		if err != nil {
			return 0, err
		}
	}
	if w.sandbox == nil {
		if err := w.makeSandbox(ctx); err != nil {
			return 0, err
		}
	}
	if err := w.kill(ctx); err != nil {
		return 0, err
	}
	initialized := w.initialized()
	for _, c := range w.pod.Spec.InitContainers {
		r := w.containers[c.Name]
		switch {
		case isSidecar(c):
			if w.runsNow(r) {
				continue
			}
			later, err := w.start(ctx, followers, c.Name, r)
			if !initialized || err != nil || w.sandbox == nil {
				return max(later, relistPeriod), err
			}
			continue
		case w.succeeded(r):
			continue
		case w.runsNow(r):
			return 0, nil
		}
		return w.start(ctx, followers, c.Name, r)
	}
	var failures []error
	for _, c := range w.pod.Spec.Containers {
		r := w.containers[c.Name]
		if w.runsNow(r) || w.endedForGood(r) {
			continue
		}
		later, err := w.start(ctx, followers, c.Name, r)
		failures = append(failures, err)
		if later > 0 && (next == 0 || later < next) {
			next = later
		}
		if w.sandbox == nil || w.deleting() || ctx.Err() != nil {
			break
		}
	}
	return next, errors.Join(failures...)
}

// initialized reports whether the app containers may start.
func (w *worker) initialized() bool {
	return !slices.ContainsFunc(w.pod.Spec.InitContainers, func(c corev1.Container) bool {
		r := w.containers[c.Name]
		return isSidecar(c) && !w.runsNow(r) && r.runs == 0 || !isSidecar(c) && !w.succeeded(r)
	})
}

func (w *worker) succeeded(r *record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.container != nil && !r.exited.IsZero() && r.failed == "" && r.code == 0
}

// endedForGood reports whether the container exited and kubelet does not start it again.
func (w *worker) endedForGood(r *record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.overLocked(w.pod.Spec.RestartPolicy)
}

// overLocked reports whether the container exited and is not started again with this policy of its pod.
func (r *record) overLocked(policy corev1.RestartPolicy) bool {
	if r.exited.IsZero() {
		return false
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return true
	case corev1.RestartPolicyOnFailure:
		return r.code == 0 && r.failed == ""
	default:
		return false
	}
}

// over reports whether the pod has ended for good.
func (w *worker) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	phase := w.phaseLocked()
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// terminate ends what is left of the pod.
func (w *worker) terminate(ctx context.Context, deleted bool) error {
	if w.sandbox != nil {
		requests, cancel := context.WithTimeout(ctx, w.k.o.RequestTimeout)
		defer cancel()
		if err := errors.Join(w.sandbox.Stop(requests), w.sandbox.Remove(requests)); err != nil {
			return err
		}
		w.sandbox = nil
		w.seen(Over, "")
	}
	if w.removed = deleted; deleted {
		w.seen(Removed, "")
	}
	return nil
}
