package podwatch

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sirupsen/logrus"
)

var (
	errNotSynced = errors.New("the pods of this node are not known yet")
	errStopped   = errors.New("the pod watch has stopped")
)

// health remembers how the last exchange with the API server went, and logs when that changes.
type health struct {
	log  logrus.FieldLogger
	mute *mute

	mu   sync.Mutex
	err  error // nil: a watch is open and no failure was seen since
	said bool  // the failure was logged
}

func newHealth(log logrus.FieldLogger) *health {
	return &health{log: log, mute: newMute(), err: errNotSynced}
}

// failed notes that listing or watching went wrong.
func (h *health) failed(err error) {
	h.mu.Lock()
	said := h.said
	h.err, h.said = err, true
	h.mu.Unlock()
	switch {
	case errors.Is(err, errStopped):
	case said:
		h.log.WithError(err).Debug("the pod watch still fails")
	default:
		h.log.WithError(err).Warn("the pod watch fails: what is known of pods may be out of date")
	}
}

// works notes that a watch is open and caught up. Of a mute one that says nothing: the pods have to be listed first.
func (h *health) works() {
	if h.mute.now() {
		return
	}
	h.mu.Lock()
	recovered := h.said
	h.err, h.said = nil, false
	h.mu.Unlock()
	if recovered {
		h.log.Info("the pod watch works again")
	}
}

func (h *health) last() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Healthy reports whether the pods of this node are known and the watch is not failing now. It is false before the
// first list is in, after a failed list or watch until the next watch is open, and after Run. A regular end of a watch
// (the API server closes each after some minutes) is no failure. A watch that tells nothing is noticed by who knows
// better, see [Watch.ListAnew]. A connection that died silently is found by
// client-go's HTTP/2 health check, after 45 s by default.
func (w *Watch) Healthy() bool { return w.Err() == nil }

// Err returns why the watch is not healthy, nil when it is.
func (w *Watch) Err() error {
	err := w.health.last()
	switch synced := w.hasSynced(); {
	case err != nil:
		return fmt.Errorf("podwatch: %w", err)
	case synced == nil || !synced():
		return fmt.Errorf("podwatch: %w", errNotSynced)
	default:
		return nil
	}
}

// hasSynced gives what tells whether the first list is in; nil before Run.
func (w *Watch) hasSynced() func() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced
}
