package waiter

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// leanMark is the start of an environment variable. BecomeLean sets it to the parent of the
// process when it runs the program again.
const leanMark = "PACEMAKER_PARENT="

// BecomeLean runs the program again in this process, with settings that keep the Go
// runtime small. They must be set before the runtime begins:
//
//   - no transparent huge pages: if they are set to "always", the heap of
//     some 300 KiB takes one or two pages of 2 MiB;
//   - GOMAXPROCS=1: the runtime allocates some 15 KiB for each CPU.
//
// The process ID, the parent and the open files stay the same; of the environment, only the
// variables in keep stay. BecomeLean returns in the new program, or if the kernel cannot run it,
// and returns the parent that the process had first. Call it before anything is read from stdin.
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
	// Both may fail, on an old kernel or without /proc. Then the process only takes more
	// memory. Exec returns only if it fails.
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	_ = unix.Exec("/proc/self/exe", os.Args, append(kept, leanMark+strconv.Itoa(parent), "GOMAXPROCS=1"))
	return parent
}
