package podwatch

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
)

// Healthy reports whether what is known of the pods of this node is up to date, as far as the API server can be
// reached. It is false before the first list is complete, after a watch that broke off and after a failed request until
// the pods are listed and watched again, and after Run.
func (w *Watch) Healthy() bool { return w.informer.Current() }

// Fault returns why the pods cannot be read now; nil if they can be, or if that is not known yet.
func (w *Watch) Fault() *informer.Fault { return w.informer.Fault() }

// HealthySince reports whether Healthy returns true, or did after the time t.
func (w *Watch) HealthySince(t time.Time) bool { return w.informer.CurrentSince(t) }

// Listed reports whether the pods of the node were listed once: then what is known of them is right, or was when the
// API server was reached last.
func (w *Watch) Listed() bool { return w.informer.Listed() }
