package plugin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// bubbleAPI is an API server whose pods lose no change between a list and the watch that follows, unlike those of
// client-go's fake clientset, which serves the rest.
type bubbleAPI struct {
	kube.Interface
	pods  *podStore
	tells func(*corev1.Event)
}

func (a bubbleAPI) Pods(string) kube.Follow { return a.pods }

// IsWatchListSemanticsUnSupported makes client-go list instead of stream.
func (bubbleAPI) IsWatchListSemanticsUnSupported() bool { return true }

// podStore keeps pods, and all their changes.
type podStore struct {
	mu       sync.Mutex
	pods     map[types.UID]*corev1.Pod
	history  []watch.Event
	watchers map[*podFollower]struct{}
	away     bool // it answers nothing
}

// errAway is the error of an API server that is away.
var errAway = errors.New("connection refused")

func (s *podStore) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

// setAway takes the API server away, which ends the watches, or brings it back. kubelet reports what has changed then.
func (s *podStore) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
	for f := range s.watchers {
		close(f.events)
		delete(s.watchers, f)
	}
}

func newPodStore() *podStore {
	return &podStore{pods: map[types.UID]*corev1.Pod{}, watchers: map[*podFollower]struct{}{}}
}

// podFollower is one watch of the pods.
type podFollower struct {
	store  *podStore
	events chan watch.Event
}

func (f *podFollower) ResultChan() <-chan watch.Event { return f.events }

func (f *podFollower) Stop() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	delete(f.store.watchers, f)
}

// mostChanges is how many changes of pods a run may have.
const mostChanges = 1 << 15

// put adds a pod or changes it, and returns what is stored.
func (s *podStore) put(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, kind := s.pods[pod.UID], watch.Modified
	if stored == nil {
		stored, kind = pod, watch.Added
	}
	stored = stored.DeepCopy()
	change(stored)
	s.pods[pod.UID] = stored
	s.tellLocked(kind, stored)
	return stored
}

// remove removes a pod that has nothing left on the node.
func (s *podStore) remove(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored := s.pods[pod.UID]; stored != nil {
		delete(s.pods, pod.UID)
		s.tellLocked(watch.Deleted, stored.DeepCopy())
	}
}

func (s *podStore) tellLocked(kind watch.EventType, pod *corev1.Pod) {
	pod.ResourceVersion = strconv.Itoa(len(s.history) + 1)
	e := watch.Event{Type: kind, Object: pod}
	s.history = append(s.history, e)
	for f := range s.watchers {
		f.events <- e
	}
}

// Each implements [kube.Follow].
func (s *podStore) Each(_ context.Context, _ metav1.ListOptions, f func(runtime.Object)) (version string, err error) {
	s.mu.Lock()
	version = strconv.Itoa(len(s.history))
	away := s.away
	s.mu.Unlock()
	if away {
		return "", errAway
	}
	for _, pod := range s.all() {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			f(pod.DeepCopy())
		}
	}
	return version, nil
}

// Watch implements [kube.Follow].
func (s *podStore) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	from, err := strconv.Atoi(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errAway
	}
	f := &podFollower{store: s, events: make(chan watch.Event, mostChanges)}
	for _, e := range s.history[from:] {
		f.events <- e
	}
	s.watchers[f] = struct{}{}
	return f, nil
}

// all returns the pods, in the order of their UIDs.
func (s *podStore) all() []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
}

func (s *podStore) has(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[uid] != nil
}

// Events implements [kube.Interface].
func (a bubbleAPI) Events(string) kube.Events { return tellsEvents(a.tells) }

// tellsEvents gets the events that are written.
type tellsEvents func(*corev1.Event)

func (t tellsEvents) Create(_ context.Context, e *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	t(e)
	return e, nil
}

func (t tellsEvents) Update(_ context.Context, e *corev1.Event, _ metav1.UpdateOptions) (*corev1.Event, error) {
	t(e)
	return e, nil
}

func (tellsEvents) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*corev1.Event, error) {
	return &corev1.Event{}, nil
}
