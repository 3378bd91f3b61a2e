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

// Errors that [Informer.Err] returns before the first list is complete, and after Run ended.
var (
	ErrNotSynced = errors.New("the first list is not complete yet")
	ErrStopped   = errors.New("no longer followed")
)

// health records whether the last request to the API server succeeded, and logs when that changes.
type health struct {
	what, meanwhile string
	refused         func()
	log             logrus.FieldLogger

	mu        sync.Mutex
	err       error     // nil: a watch is open
	doubt     error     // the argument of Distrust, until the next list is complete
	said      string    // the state that was logged last
	began     time.Time // when the last list began
	streams   bool      // that list is the first part of a watch
	completed time.Time // when the last complete list began
}

// The states that are logged.
const (
	reachable   = ""
	unreachable = "unreachable"
	unknown     = "unknown"
)

// Err returns why the known objects may be out of date, or nil if they are current. It is not nil before the
// first list is complete, from a failed list or watch until the next watch is open, from Distrust until the next
// list is complete, and after Run. The end of a watch, which the API server closes every few minutes, is not a
// failure, even if it ends at once or with an error: the objects are then listed again, within a minute. client-go
// takes 45 s to notice a connection that died silently.
func (h *health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doubt != nil {
		return h.doubt
	}
	return h.err
}

// Distrust reports that the watch missed a change, which why describes. Err returns why until the objects are listed
// again from the newest state. Distrust does not begin that list: call [Informer.Relist].
func (h *health) Distrust(why error) {
	h.mu.Lock()
	h.doubt, h.said = why, unreachable
	h.mu.Unlock()
	h.log.WithError(why).Warnf("the watch of %s is open but does not report a change: listing them again", h.what)
}

// fail records a failed request.
func (h *health) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return // Run ends, or Relist was called
	}
	h.mu.Lock()
	h.err = err
	h.mu.Unlock()
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return // a long watch ends this way, and the objects are listed again
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
}

// fallsBack reports whether err is the answer of an API server that cannot stream the first list. client-go then
// requests a plain list at once.
func fallsBack(o metav1.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && apierrors.IsInvalid(err)
}

// works records that a watch is open after a complete list. A complete list alone is not enough, because the
// watch after it may be forbidden.
func (h *health) works() {
	h.mu.Lock()
	h.err = nil
	doubted := h.doubt != nil
	h.mu.Unlock()
	if !doubted && h.become(reachable) {
		h.log.Infof("watching %s again", h.what)
	}
}

// begins records that a list begins, and reports whether it has to return the newest state.
func (h *health) begins(streams bool) (newest bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began, h.streams = time.Now(), streams
	return h.doubt != nil
}

// listed records that the list is complete.
func (h *health) listed() {
	h.mu.Lock()
	h.doubt, h.completed = nil, h.began
	streams := h.streams
	h.mu.Unlock()
	if streams {
		h.works()
	}
}

// Listed returns when the last complete list began. It is zero before the first.
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
