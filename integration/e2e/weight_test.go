//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const mib = 1 << 20

// weight is what a daemon uses of its node.
type weight struct {
	goroutines, files int
	heap, resident    float64 // MiB; heap is what the last garbage collection left
}

func (w weight) String() string {
	return fmt.Sprintf("%d goroutines, %d open files, heap %.1f MiB, resident %.1f MiB", w.goroutines, w.files, w.heap, w.resident)
}

// weighed returns what the daemon uses now. The collector runs again when the heap is twice what
// the last collection left.
func (d *daemon) weighed(t *testing.T) weight {
	t.Helper()
	return weight{
		goroutines: int(d.metric(t, "go_goroutines")), files: int(d.metric(t, "process_open_fds")),
		heap: d.metric(t, "go_memstats_next_gc_bytes") / 2 / mib, resident: d.metric(t, "process_resident_memory_bytes") / mib,
	}
}

// fresh returns what a new daemon uses once all its parts run, including its turns to sum up. The
// maximum of its first seconds counts.
func (d *daemon) fresh(t *testing.T) (most weight) {
	t.Helper()
	eventually(t, "the daemon sums up", func() bool {
		return strings.Contains(d.logged(t), "this daemon takes turns with others to sum up")
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

// How much more memory a daemon may use after all its work, in MiB: its record of the last starts
// is full, and the kernel has not yet taken back what the collector freed.
const (
	heapGrows     = 4
	residentGrows = 16
)

// assertNoHeavier waits until an idle daemon uses no more than when it was new. If it does not get
// there, its log has the stacks of its goroutines.
func (d *daemon) assertNoHeavier(t *testing.T, fresh weight) (now weight) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon uses %s, when it was new %s", now, fresh)
		}
	})
	eventually(t, "the daemon uses no more than when it was new", func() bool {
		now = d.weighed(t)
		return now.goroutines <= fresh.goroutines && now.files <= fresh.files &&
			now.heap <= fresh.heap+heapGrows && now.resident <= fresh.resident+residentGrows
	})
	return now
}
