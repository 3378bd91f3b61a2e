package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// makeSandbox makes the pod's sandbox.
func (w *worker) makeSandbox(ctx context.Context) error {
	requests, cancel := context.WithTimeout(ctx, 2*w.k.o.RequestTimeout)
	defer cancel()
	w.seen(AsksSandbox, "")
	annotations := map[string]string{"kubernetes.io/config.source": "api"}
	maps.Copy(annotations, w.pod.Annotations)
	sandbox, err := w.k.o.Runtime.RunPod(requests, PodSpec{
		Namespace: w.pod.Namespace, Name: w.pod.Name, UID: string(w.pod.UID), Labels: w.pod.Labels, Annotations: annotations,
		CgroupParent: path.Join("/kubepods/burstable", "pod"+string(w.pod.UID)),
	})
	if err != nil {
		w.seen(SandboxRefused, "")
		return err
	}
	w.sandbox = sandbox
	return nil
}

// start starts a container, or returns when its back-off is over.
func (w *worker) start(ctx context.Context, followers *sync.WaitGroup, name string, r *record) (later time.Duration, err error) {
	if later := w.backsOff(r); later > 0 {
		w.seen(BacksOff, name)
		return later, nil
	}
	p := w.program(name, r.runs)
	if !r.pulled && !pause(ctx, p.Pull) {
		return 0, context.Cause(ctx)
	}
	r.pulled = true
	requests, cancel := context.WithTimeout(ctx, w.k.o.RequestTimeout)
	defer cancel()
	w.seen(AsksContainer, name)
	c, err := w.sandbox.CreateContainer(requests, ContainerSpec{Name: name, Run: p.run, Env: environmentOf(w.pod, name)})
	if err != nil {
		w.seen(CreateRefused, name)
		w.holds(r, "CreateContainerError", err)
		if first := !w.triedOnce[name]; first && ctx.Err() == nil {
			w.triedOnce[name] = true
			return 0, errAtOnce
		}
		return 0, err
	}
	w.made(name, r, c)
	w.seen(Starts, name)
	requests, cancelStart := context.WithTimeout(ctx, w.k.o.RequestTimeout)
	defer cancelStart()
	if err := c.Start(requests); err != nil {
		return 0, w.failed(ctx, name, r, err)
	}
	w.mu.Lock()
	r.started, r.waiting, r.message = time.Now(), "", ""
	r.runs++
	w.mu.Unlock()
	w.seen(Runs, name)
	w.report()
	followers.Go(func() { w.follow(ctx, name, c, p) })
	return 0, nil
}

// environmentOf returns the environment of a container.
func environmentOf(pod *corev1.Pod, name string) (environment []string) {
	for _, c := range containersOf(pod) {
		for _, v := range c.Env {
			if c.Name == name {
				environment = append(environment, v.Name+"="+v.Value)
			}
		}
	}
	return environment
}

// made notes a container that was created, and counts a restart unless it is the first.
func (w *worker) made(name string, r *record, c *Container) {
	w.mu.Lock()
	r.made++
	again := r.made > 1
	r.container, r.started, r.exited, r.failed, r.ready, r.fails = c, time.Time{}, time.Time{}, "", false, false
	r.waiting, r.message = "ContainerCreating", ""
	w.mu.Unlock()
	w.report()
	if again {
		w.seen(RestartsCounted, name)
	}
}

// failed notes a start that failed. A kubelet that ends does not live to see that.
func (w *worker) failed(ctx context.Context, name string, r *record, err error) error {
	w.mu.Lock()
	r.exited, r.code, r.failed = time.Now(), startErrorCode, err.Error()
	r.waiting, r.message = "RunContainerError", err.Error()
	w.mu.Unlock()
	if errors.Is(err, ErrDown) { // the next runtime does not know the sandbox as ready
		w.lostSandbox()
	}
	if ctx.Err() == nil {
		w.seen(StartFailed, name)
	}
	w.report()
	return fmt.Errorf("start %s: %w", name, err)
}

// sandboxDied reports whether the pod's sandbox has died since it was asked last.
func (w *worker) sandboxDied() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	died := w.dies && w.sandbox != nil
	w.dies = false
	return died
}

// lostSandbox makes the next sync begin with a new sandbox. The old one goes once a runtime is there.
func (w *worker) lostSandbox() {
	old := w.sandbox
	w.sandbox = nil
	w.mu.Lock()
	for _, r := range w.containers {
		r.container, r.started, r.exited, r.failed, r.ready, r.fails = nil, time.Time{}, time.Time{}, "", false, false
	}
	w.mu.Unlock()
	w.k.mu.Lock()
	life, running := w.k.life, w.k.running
	w.k.mu.Unlock()
	running.Go(func() {
		for old.Remove(life) != nil && pause(life, relistPeriod) {
			continue
		}
	})
}

// holds notes why a container was not made.
func (w *worker) holds(r *record, reason string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.waiting, r.message = reason, err.Error()
}

// backsOff returns how long a container that exited must still wait, as kubelet's flowcontrol.Backoff does.
func (w *worker) backsOff(r *record) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if r.exited.IsZero() {
		return 0
	}
	forgotten := r.backOff == 0 || r.exited.Sub(r.backOffFrom) > crashForgotten
	if rest := r.exited.Add(r.backOff).Sub(now); !forgotten && rest > 0 {
		r.waiting, r.message = "CrashLoopBackOff", "back-off restarting failed container"
		return rest
	}
	r.backOff, r.backOffFrom = min(2*r.backOff, crashBackOffMax), now
	if forgotten {
		r.backOff = crashBackOff
	}
	return 0
}

// run is what the process does.
func (p Program) run(ctx context.Context) int {
	if p.Exits == 0 {
		<-ctx.Done()
		return 143
	}
	if !pause(ctx, p.Exits) {
		return 143
	}
	return p.Code
}

// follow probes a container and notices its exit.
func (w *worker) follow(ctx context.Context, name string, c *Container, p Program) {
	ended := make(chan struct{})
	var probing sync.WaitGroup
	probing.Go(func() { w.probe(ctx, ended, name, c, p) })
	status, err := c.Wait(ctx)
	close(ended)
	probing.Wait()
	notices := w.k.random(w.pod.UID, fmt.Sprintf("/%s/%d", name, status.StartedAt.UnixNano())).Float64()
	if err != nil || !pause(ctx, relistPeriod/4+time.Duration(notices*float64(relistPeriod)*3/4)) {
		return
	}
	if w.exited(name, c, status) {
		w.wakeUp()
	}
}

// exited notes the exit of a container, if that is not known. It reports whether it did.
func (w *worker) exited(name string, c *Container, status Status) bool {
	w.mu.Lock()
	r := w.containers[name]
	latest := r.container == c && r.exited.IsZero()
	if latest {
		r.exited, r.code, r.ready = status.FinishedAt, status.ExitCode, false
	}
	w.mu.Unlock()
	if latest {
		w.seen(Exits, name)
		w.report()
	}
	return latest
}
