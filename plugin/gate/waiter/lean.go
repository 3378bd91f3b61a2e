package waiter

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// leanMark begins the variable that tells the second life of the process from
// the first, and keeps the parent that the first had.
const leanMark = "PACEMAKER_PARENT="

// BecomeLean runs the program again in this process, set up so that the Go
// runtime stays small whatever the node is like. Only before the runtime begins
// can these be chosen:
//
//   - no transparent huge pages: where they are set to "always", the heap of
//     some 300 KiB takes one or two pages of 2 MiB;
//   - GOMAXPROCS=1: the runtime sets aside some 15 KiB for each CPU.
//
// Process id, parent and open files stay, and of the environment what keep names. It
// returns the parent that the process began with: in the second life, or where the kernel
// refuses to begin one. To be called first of all: before it, nothing may be read.
func BecomeLean(keep ...string) (parent int) {
	var kept []string
	for _, e := range unix.Environ() {
		if value, ok := strings.CutPrefix(e, leanMark); ok {
			if parent, err := strconv.Atoi(value); err == nil {
				return parent
			}
		}
		if name, _, _ := strings.Cut(e, "="); slices.Contains(keep, name) {
			kept = append(kept, e)
		}
	}
	parent = unix.Getppid()
	// Either may fail, on an old kernel or without /proc: the hook then only takes
	// more memory. Exec returns only when it failed.
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	_ = unix.Exec("/proc/self/exe", os.Args, append(kept, leanMark+strconv.Itoa(parent), "GOMAXPROCS=1"))
	return parent
}
