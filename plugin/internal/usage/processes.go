package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// mostProcesses is how many processes of a container are measured at most.
	mostProcesses = 256
	// mostThreads is how many threads of a pod are looked at in one measurement at most. Programs have some hundreds.
	mostThreads = 2048
)

// family returns a process and its descendants, as far as the kernel lists them. It looks at no more than this many
// threads, and takes those that it looks at from the number.
func (m *Meter) family(pid int, threads *int) []int {
	family := []int{pid}
	for i := 0; i < len(family) && len(family) < mostProcesses; i++ {
		of := m.threads(family[i], *threads)
		*threads -= len(of)
		family = append(family, m.children(family[i], of)...)
	}
	return family[:min(len(family), mostProcesses)]
}

// children returns the processes that these threads of a process have started. It lists no folder of a thread: /proc makes
// each of its 50 files for that, which takes longer than all else that is measured.
func (m *Meter) children(pid int, threads []int) (pids []int) {
	for _, id := range threads {
		data, err := os.ReadFile(filepath.Join(m.tasks(pid), strconv.Itoa(id), "children"))
		if err != nil {
			continue // the thread has ended since
		}
		for child := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(child); err == nil && n > 0 {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// threads returns the first threads of a process, none if it has ended.
func (m *Meter) threads(pid, most int) (ids []int) {
	if most <= 0 {
		return nil // Readdirnames would return all
	}
	dir, err := os.Open(m.tasks(pid))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(most) // an error means that there are no more
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// tasks returns the folder with the threads of a process.
func (m *Meter) tasks(pid int) string { return filepath.Join(m.root, strconv.Itoa(pid), "task") }

// waited returns for how long a thread waited for a CPU.
func (m *Meter) waited(pid, thread int) (seconds float64, err error) {
	data, err := os.ReadFile(filepath.Join(m.tasks(pid), strconv.Itoa(thread), "schedstat"))
	if err != nil {
		return 0, err
	}
	var ran, waited time.Duration
	_, err = fmt.Sscan(string(data), &ran, &waited)
	return waited.Seconds(), err
}
