package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What [Informer.Err] returns before the first list, and after Run.
var (
	ErrNotSynced = errors.New("the first list is not complete yet")
	ErrStopped   = errors.New("it is not followed any more")
)

// health knows how the last exchange with the API server went, and logs when that changes.
type health struct {
	what, meanwhile string
	refused         func()
	failed          func(error)
	log             logrus.FieldLogger

	mu        sync.Mutex
	err       error  // nil: a watch is open and has not failed since
	doubt     error  // why what is known must be listed again before it counts; nil: it counts
	said      string // the state that was logged last
	began     time.Time
	streams   bool      // the list that began then comes as the first part of a watch
	completed time.Time // when the last complete list began
}

// The states that are logged.
const (
	reachable   = ""
	unreachable = "unreachable"
	unknown     = "unknown"
)

// Err returns why what is known may be out of date; nil: it is not. That is so before the first list, after a
// failed list or watch until the next watch is open, after Distrust until the next list, and after Run. The
// regular end of a watch, which the API server brings about every few minutes, is no failure. client-go
// notices a connection that died silently after 45 s.
func (h *health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doubt != nil {
		return h.doubt
	}
	return h.err
}

// Distrust is for a caller who knows that the watch should have told of something: why says of what. Until
// the objects were listed again, from the newest state, Err returns it. The list does not begin by itself:
// see [Informer.Relist].
func (h *health) Distrust(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubt, h.said = why, unreachable
	h.log.WithError(why).Warnf("the watch of %s is open and does not tell of a change: listing them again", h.what)
}

// fail takes note of a failure.
func (h *health) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return // this side has ended it
	}
	h.mu.Lock()
	h.err = err
	h.mu.Unlock()
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return // the objects are listed again: a part of every long watch
	case apierrors.IsNotFound(err):
		if h.become(unknown) {
			h.log.WithError(err).Warnf("the API server does not know %s: install its CustomResourceDefinition (kubectl apply -k deploy/crds); trying again until it does", h.what)
		}
	case h.become(unreachable):
		h.log.WithError(err).Warnf("cannot watch %s: %s; trying again until it works", h.what, cmp.Or(h.meanwhile, "what is in force stays"))
	}
	if h.refused != nil && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
		h.refused()
	}
	if h.failed != nil {
		h.failed(err)
	}
}

// fallsBack reports whether err is the answer of an API server that cannot stream the first list: client-go
// asks for a plain list then, at once.
func fallsBack(o metav1.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && apierrors.IsInvalid(err)
}

// works takes note that a watch is open after a complete list. Only a watch shows that all is well: a list can
// succeed where the watch after it is not allowed.
func (h *health) works() {
	h.mu.Lock()
	h.err = nil
	doubted := h.doubt != nil
	h.mu.Unlock()
	if !doubted && h.become(reachable) {
		h.log.Infof("watching %s again", h.what)
	}
}

// begins takes note that a list begins, and reports whether it has to come from the newest state.
func (h *health) begins(streams bool) (newest bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began, h.streams = time.Now(), streams
	return h.doubt != nil
}

// listed takes note that the list is complete.
func (h *health) listed() {
	h.mu.Lock()
	h.doubt, h.completed = nil, h.began
	streams := h.streams
	h.mu.Unlock()
	if streams {
		h.works()
	}
}

// Listed returns when the last complete list began; zero before the first.
func (h *health) Listed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.completed
}

func (h *health) stopped() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = fmt.Errorf("%s: %w", h.what, ErrStopped)
}

// become sets the state that is logged, and reports whether it is new.
func (h *health) become(state string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	isNew := h.said != state
	h.said = state
	return isNew
}
