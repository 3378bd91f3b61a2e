package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

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

	mu       sync.Mutex
	err      error  // nil: a watch is open and has not failed since
	said     string // the state that was logged last
	streams  bool   // the list that is under way comes as the first part of a watch
	complete bool   // a list was complete
}

// The states that are logged.
const (
	reachable   = ""
	unreachable = "unreachable"
	unknown     = "unknown"
)

// Err returns why what is known may be out of date; nil: it is not. That is so before the first list, after a
// failed list or watch until the next watch is open, and after Run. The
// regular end of a watch, which the API server brings about every few minutes, is no failure. client-go
// notices a connection that died silently after 45 s.
func (h *health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
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
	h.mu.Unlock()
	if h.become(reachable) {
		h.log.Infof("watching %s again", h.what)
	}
}

// begins takes note that a list begins.
func (h *health) begins(streams bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams = streams
}

// listed takes note that the list is complete.
func (h *health) listed() {
	h.mu.Lock()
	h.complete = true
	streams := h.streams
	h.mu.Unlock()
	if streams {
		h.works()
	}
}

// Listed reports whether a list was complete.
func (h *health) Listed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.complete
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
