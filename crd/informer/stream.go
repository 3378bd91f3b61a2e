package informer

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// endable changes lw so that a reflector ends at once when its context does.
//
// Until a reflector has all objects it asks for them by a watch. When the connection for that
// is refused it sleeps, for up to half a minute, and its context does not wake it. So here a
// refused connection is another error, after which it lists; that is refused as well, and the
// sleep that follows ends with the context.
func endable(lw *cache.ListWatch) *cache.ListWatch {
	watching := lw.WatchFuncWithContext
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		w, err := watching(ctx, o)
		if err != nil && o.SendInitialEvents != nil && utilnet.IsConnectionRefused(err) {
			err = errors.New(err.Error()) // not wrapped, so that it is another
		}
		return w, err
	}
	return lw
}

// shortWatch is the age below which client-go takes the end of a watch without events for a failure.
const shortWatch = time.Second

var errShortWatch = errors.New("the API server closes the watch at once")

// stream passes on the events of a watch and notes its errors. client-go does not tell its error handler of
// errors inside a stream.
type stream struct {
	inner  watch.Interface
	ctx    context.Context // of the request
	health *health
	opened time.Time
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func (h *health) stream(ctx context.Context, inner watch.Interface) watch.Interface {
	s := &stream{inner: inner, ctx: ctx, health: h, opened: time.Now(), events: make(chan watch.Event), done: make(chan struct{})}
	go s.pass()
	return s
}

// ResultChan returns the channel of events; it is closed when the watch ends.
func (s *stream) ResultChan() <-chan watch.Event { return s.events }

// Stop ends the watch. It can be called more than once.
func (s *stream) Stop() {
	s.once.Do(func() {
		close(s.done)
		s.inner.Stop()
	})
}

func (s *stream) pass() {
	defer close(s.events)
	empty := true
	for event := range s.inner.ResultChan() {
		empty = false
		if event.Type == watch.Error {
			s.fail(apierrors.FromObject(event.Object))
		}
		select {
		case s.events <- event:
		case <-s.done:
			return
		}
	}
	if empty && time.Since(s.opened) < shortWatch {
		s.fail(errShortWatch)
	}
}

// fail notes a failure, unless this side ended the stream.
func (s *stream) fail(err error) {
	select {
	case <-s.done:
	default:
		s.health.fail(s.ctx, err)
	}
}
