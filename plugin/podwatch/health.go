package podwatch

import "fmt"

// Healthy reports whether what is known of the pods of this node is up to date, as far as the API server can be
// reached: see [Watch.Err].
func (w *Watch) Healthy() bool { return w.Err() == nil }

// Err returns why the watch is not healthy, nil when it is. It is not before the first list is complete, after a
// failed list or watch until the next watch is open, and after Run.
func (w *Watch) Err() error {
	if err := w.informer.Err(); err != nil {
		return fmt.Errorf("podwatch: %w", err)
	}
	return nil
}

// Listed reports whether the pods of the node were listed once: then what is known of them is right, or was when the
// API server was reached last.
func (w *Watch) Listed() bool { return w.informer.Listed() }
