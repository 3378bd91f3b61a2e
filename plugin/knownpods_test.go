package plugin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// knownPods is a pod watch whose pods a test sets.
type knownPods struct {
	mu      sync.Mutex
	pods    map[string]podwatch.Pod
	away    bool
	panics  string // the UID of a pod for which every call panics
	changed func(podwatch.Pod, bool)
	// held has the longest wait of each call for an unknown pod.
	held []time.Duration
}

func (k *knownPods) Get(uid string) (podwatch.Pod, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.panics == uid {
		panic("the pod watch is broken")
	}
	pod, ok := k.pods[uid]
	return pod, ok
}

func (k *knownPods) Await(ctx context.Context, uid string) (podwatch.Pod, bool) {
	if end, ok := ctx.Deadline(); ok {
		k.mu.Lock()
		k.held = append(k.held, time.Until(end))
		k.mu.Unlock()
	}
	for {
		if pod, ok := k.Get(uid); ok {
			return pod, true
		}
		select {
		case <-ctx.Done():
			return podwatch.Pod{}, false
		case <-time.After(time.Millisecond):
		}
	}
}

func (k *knownPods) Healthy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.away
}

func (k *knownPods) HealthySince(time.Time) bool { return k.Healthy() }

func (k *knownPods) OnNode() (pods []podwatch.Pod, listed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.pods)), !k.away
}

func (k *knownPods) SelectBy(func(string, map[string]string) []string, time.Duration) {}

// goesAway makes the API server unreachable.
func (k *knownPods) goesAway() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = true
}

// holds returns how long handlers were ready to wait for unknown pods: in all, and the longest.
func (k *knownPods) holds() (sum, longest time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.held {
		sum, longest = sum+d, max(longest, d)
	}
	return sum, longest
}

// panicsOf makes every call for a pod panic.
func (k *knownPods) panicsOf(uid string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.panics = uid
}

// follow sets the function that is called for changes.
func (k *knownPods) follow(changed func(podwatch.Pod, bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = changed
}

// tell changes the pod and reports the change.
func (k *knownPods) tell(uid string, change func(*podwatch.Pod)) {
	k.mu.Lock()
	pod := k.pods[uid]
	change(&pod)
	k.pods[uid] = pod
	changed := k.changed
	k.mu.Unlock()
	changed(pod, false)
}

// remove deletes the pod.
func (k *knownPods) remove(uid string) {
	k.mu.Lock()
	pod := k.pods[uid]
	delete(k.pods, uid)
	changed := k.changed
	k.mu.Unlock()
	changed(pod, true)
}
