package podwatch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// askEvery is the least time between two lists that [Watch.ListAnew] asks for.
	askEvery = 5 * time.Minute
	// askWithin spreads these lists: a restored etcd can leave the watches of all nodes mute at once.
	askWithin = 30 * time.Second
)

var errMute = errors.New("a watch is open and tells nothing")

// mute knows whether the watch is open and tells nothing, though it should.
type mute struct {
	again chan struct{} // holds at most one: the watch that is open is to end, so that client-go lists the pods

	mu     sync.Mutex
	is     bool
	listed time.Time // when the last list that is complete began
	next   time.Time // before that no list is asked for again
}

func newMute() *mute { return &mute{again: make(chan struct{}, 1)} }

// Heard returns when the API server last told anything of the pod with this NRI uid, or when it began to list all pods
// for the last time, whichever is later. It is zero before the first list.
func (w *Watch) Heard(uid string) time.Time {
	listed := w.health.mute.lastList()
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.pods[uid]; ok && c.heard.After(listed) {
		return c.heard
	}
	return listed
}

// ListAnew is for who knows that the watch should have told something: why says what. From then on [Watch.Healthy] is
// false, until the pods were listed anew, from the API server's newest state. That list begins at a random moment of the
// next 30 s. Within 5 minutes of an earlier call, and while the watch is not healthy anyway, ListAnew does nothing.
// It does not block.
func (w *Watch) ListAnew(now time.Time, why string) {
	if !w.Healthy() || !w.health.mute.begins(now) {
		return
	}
	w.health.failed(fmt.Errorf("%w: %s", errMute, why))
	time.AfterFunc(rand.N(askWithin), w.health.mute.ask)
}

// begins takes note that the watch is mute; false: a list was asked for a short time ago.
func (m *mute) begins(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.is || now.Before(m.next) {
		return false
	}
	m.is, m.next = true, now.Add(askEvery+rand.N(askWithin))
	return true
}

// ask has the stream that is open end.
func (m *mute) ask() {
	select {
	case m.again <- struct{}{}:
	default: // it will
	}
}

// complete takes note of a list that began at a time.
func (m *mute) complete(began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.is, m.listed = false, began
}

func (m *mute) now() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.is
}

func (m *mute) lastList() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed
}

// newest has a list come from the API server's newest state while the watch is mute: what the server has in its memory
// may be as old as the watch.
func (m *mute) newest(opts *metav1.ListOptions) {
	streams := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if !m.now() || (opts.Watch && !streams) {
		return
	}
	opts.ResourceVersion = ""
	if !streams {
		opts.ResourceVersionMatch = ""
	}
}

// expired is the event by which an API server says that a watch cannot go on: client-go lists then.
func expired() watch.Event {
	return watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: errMute.Error(),
	}}
}
