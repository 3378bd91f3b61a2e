package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrPodFailed is wrapped by what Keep returns for a pod whose container failed and
// is not started again.
var ErrPodFailed = errors.New("pod failed")

// RestartPolicy says which exited containers are started again.
type RestartPolicy string

// Kubernetes' restart policies.
const (
	RestartAlways    RestartPolicy = "Always"
	RestartOnFailure RestartPolicy = "OnFailure"
	RestartNever     RestartPolicy = "Never"
)

// KubeletOptions set the times of Keep. The zero value is kubelet's own.
type KubeletOptions struct {
	// RetryInterval is the wait after a refused sandbox, and after a refused create but the
	// first; a random part of up to half of it is added. 0 means 10 s.
	RetryInterval time.Duration
	// BackOff is the wait before the second restart of a container, counted from its exit; each
	// further one waits twice as long, up to MaxBackOff. The first restart does not wait. A
	// failed start counts as an exit. 0 means 10 s and 5 min.
	BackOff, MaxBackOff time.Duration
	// RequestTimeout bounds each request to the runtime; 0 means 2 min.
	RequestTimeout time.Duration
	// StopGrace is the time between SIGTERM and SIGKILL when the pod ends; 0 means 30 s, less
	// than 0 none.
	StopGrace time.Duration
	// RestartPolicy is Always if empty.
	RestartPolicy RestartPolicy
	// Observe, if set, is called with everything that happens, in order, from Keep's goroutine,
	// which waits for it.
	Observe func(KubeletEvent)
}

func (o KubeletOptions) withDefaults() KubeletOptions {
	fill := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	fill(&o.RetryInterval, 10*time.Second)
	fill(&o.BackOff, 10*time.Second)
	fill(&o.MaxBackOff, 5*time.Minute)
	fill(&o.RequestTimeout, 2*time.Minute)
	fill(&o.StopGrace, 30*time.Second)
	o.StopGrace = max(o.StopGrace, 0)
	if o.RestartPolicy == "" {
		o.RestartPolicy = RestartAlways
	}
	if o.Observe == nil {
		o.Observe = func(KubeletEvent) {}
	}
	return o
}

// Happening is what a KubeletEvent tells.
type Happening string

// What happens to a pod.
const (
	SandboxRun       Happening = "SandboxRun"
	SandboxRefused   Happening = "SandboxRefused"
	CreateRefused    Happening = "CreateRefused"
	ContainerStarts  Happening = "ContainerStarts" // created, Start is called now
	ContainerStarted Happening = "ContainerStarted"
	StartFailed      Happening = "StartFailed"
	ContainerExited  Happening = "ContainerExited"
	PodRemoved       Happening = "PodRemoved"
)

// KubeletEvent is one thing that happened to a pod in Keep.
type KubeletEvent struct {
	Time                 time.Time
	Namespace, Name, UID string
	What                 Happening
	Container            string // empty for what concerns the sandbox
	ContainerID          string // empty before there is one
	ExitCode             int    // of ContainerExited
	Err                  error  // of Refused and Failed
}

// Keep runs a pod as kubelet does, all its containers beside each other, until ctx ends:
// then it stops and removes the pod and returns nil. A pod whose containers have all ended
// for good by its restart policy is stopped and removed at once; Keep then returns nil, or
// an error that wraps ErrPodFailed.
//
// Refused sandboxes, refused creates and failed starts are tried again. A runtime that is
// down refuses nothing; Keep waits for it, and makes sandbox and containers anew if a start
// was under way or the sandbox is not in the runtime any more. Requests do not end
// with ctx: like kubelet, Keep waits for one that is under way, for at most RequestTimeout.
// To end a pod at once, stop the runtime beside ending ctx.
//
// Keep adds the labels and annotations kubelet adds, where they are not in the
// specifications, and the annotation kubernetes.io/config.source=api.
func (r *Runtime) Keep(ctx context.Context, spec PodSpec, o KubeletOptions, containers ...ContainerSpec) error {
	if len(containers) == 0 {
		return fmt.Errorf("keep pod %s/%s: no containers", spec.Namespace, spec.Name)
	}
	k := newKeptPod(r, spec, o.withDefaults(), containers)
	defer k.watchers.Wait()
	defer close(k.quit)
	for {
		again, done := k.sync(ctx)
		if done {
			return k.finish(ctx)
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return k.terminate(ctx)
		case <-k.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// jitter adds up to half of d, as kubelet does.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*0.5*float64(d))
}
