//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const mib = 1 << 20

// weight is what a daemon takes of its node.
type weight struct {
	goroutines, files int
	heap, resident    float64 // MiB; the heap is what the last garbage collection left
}

func (w weight) String() string {
	return fmt.Sprintf("%d goroutines, %d open files, heap %.1f MiB, resident %.1f MiB", w.goroutines, w.files, w.heap, w.resident)
}

// weighed gives what the daemon takes now. The collector runs again when the heap is
// twice what the last collection left.
func (d *daemon) weighed(t *testing.T) weight {
	t.Helper()
	return weight{
		goroutines: int(d.metric(t, "go_goroutines")), files: int(d.metric(t, "process_open_fds")),
		heap: d.metric(t, "go_memstats_next_gc_bytes") / 2 / mib, resident: d.metric(t, "process_resident_memory_bytes") / mib,
	}
}

// fresh gives what a new daemon takes once it does all that it does: it is the one that
// sums up, and the greatest of what it takes in its first seconds counts.
func (d *daemon) fresh(t *testing.T) (most weight) {
	t.Helper()
	eventually(t, "the daemon sums up", func() bool {
		return strings.Contains(d.logged(t), "this daemon sums up what the nodes tell")
	})
	for range 20 {
		w := d.weighed(t)
		most = weight{
			goroutines: max(most.goroutines, w.goroutines), files: max(most.files, w.files),
			heap: max(most.heap, w.heap), resident: max(most.resident, w.resident),
		}
		after(t.Context(), 100*time.Millisecond)
	}
	return most
}

// How much more memory a daemon may take after all that it has seen: its record of the
// last starts is full, and what the collector gave free the kernel has not yet. MiB.
const (
	heapGrows     = 4
	residentGrows = 16
)

// assertNoHeavier waits until an idle daemon takes no more than it took when it was new.
// What it took more of is in its log, as the stacks of its goroutines, if it does not come to that.
func (d *daemon) assertNoHeavier(t *testing.T, fresh weight) (now weight) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon takes %s, when it was new %s", now, fresh)
		}
	})
	eventually(t, "the daemon takes no more than when it was new", func() bool {
		now = d.weighed(t)
		return now.goroutines <= fresh.goroutines && now.files <= fresh.files &&
			now.heap <= fresh.heap+heapGrows && now.resident <= fresh.resident+residentGrows
	})
	return now
}
