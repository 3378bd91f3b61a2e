package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// signs are the node's own signs that a pod has started, where nobody can say
// whether it is ready: every container has run for a time, and the pod used
// little CPU lately and stood in line for little: on a node that is short of CPU, a
// pod that starves uses little, too. Made by newSigns; safe for concurrent use.
type signs struct {
	run     time.Duration // how long every container has to have run
	cores   float64       // the pod has to have wanted less
	window  time.Duration // over this time
	every   time.Duration // between two measurements
	cgroups cgroup.Reader
	proc    string          // where the host's /proc is
	host    context.Context // the same, for gopsutil

	mu      sync.Mutex
	samples map[string][]cpuSample // by pod key, the oldest first
	blind   map[string]bool        // pods whose CPU use could not be read, said once
}

type cpuSample struct {
	at   time.Time
	used float64 // CPU-seconds since the pod began
	// inLine is for how many seconds each thread stood in line for a CPU since it
	// began.
	inLine map[string]float64
}

// wanted gives the CPU-seconds that the pod used or stood in line for since an
// earlier sample. Threads that have ended since are left out.
func (c cpuSample) wanted(earlier cpuSample) float64 {
	sum := c.used - earlier.used
	for thread, waited := range c.inLine {
		sum += max(0, waited-earlier.inLine[thread])
	}
	return sum
}

func newSigns(o Options) *signs {
	return &signs{
		run: 10 * time.Second, cores: 0.2, window: 2 * time.Second, every: 500 * time.Millisecond,
		cgroups: cgroup.Reader{Root: o.CgroupRoot}, proc: o.ProcRoot, host: o.hostContext(),
		samples: map[string][]cpuSample{}, blind: map[string]bool{},
	}
}

// quiet tells whether the pod wanted little CPU over the window, given its sample
// of now. It is false until the window is full.
func (s *signs) quiet(uid string, now cpuSample) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples[uid] = append(s.samples[uid], now)
	all := s.samples[uid]
	for len(all) > 1 && now.at.Sub(all[1].at) >= s.window {
		all = all[1:]
	}
	s.samples[uid] = all
	took := now.at.Sub(all[0].at)
	return took >= s.window && now.wanted(all[0]) < s.cores*took.Seconds()
}

func (s *signs) forget(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.samples, uid)
	delete(s.blind, uid)
}

// blindOnce tells whether it is new that the pod cannot be measured.
func (s *signs) blindOnce(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.blind[uid]
	s.blind[uid] = true
	return !was
}

// judgeBySigns ends the slot of a pod that has started by the node's own signs.
func (p *pacer) judgeBySigns(now time.Time, t *throttle.Ticket) {
	v, _ := p.limiter.View(now, t.UID())
	p.mu.Lock()
	r := p.records[t.UID()]
	if r == nil {
		p.mu.Unlock()
		return
	}
	run := r.progress(v.Arrived, podwatch.Pod{})
	ended := len(run.ids) == 0 && r.exitedSince(v.Admitted) && !r.exitedSince(now.Add(-p.signs.window))
	parent, containers := r.cgroupParent, r.running()
	p.mu.Unlock()

	if ended {
		t.End(now, throttle.Completed)
		return
	}
	if !run.begun {
		return
	}
	used, err := p.signs.used(parent, containers)
	if err != nil && p.signs.blindOnce(t.UID()) {
		p.podLog(t.UID(), t.Name()).WithError(err).Warn("CPU use of the pod cannot be read: its slot ends after its containers have run for ", p.signs.run)
	}
	quiet := err != nil || p.signs.quiet(t.UID(), cpuSample{at: now, used: used, inLine: p.signs.inLine(containers)})
	if quiet && now.Sub(run.youngest) >= p.signs.run {
		t.End(now, throttle.Inferred)
	}
}

// used gives the CPU-seconds of a pod: of its cgroup, else of its containers'
// cgroups, else of its containers' processes.
func (s *signs) used(parent string, containers []container) (float64, error) {
	if parent != "" {
		if used, err := s.cgroups.CPUSeconds(parent); err == nil {
			return used, nil
		}
	}
	var sum float64
	for _, c := range containers {
		used, err := s.cgroups.CPUSeconds(c.cgroup)
		if err != nil {
			used, err = s.processCPU(c.pid)
		}
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

func (s *signs) processCPU(pid int) (float64, error) {
	if pid <= 0 {
		return 0, fmt.Errorf("neither a cgroup nor a process is known")
	}
	proc, err := process.NewProcessWithContext(s.host, int32(pid))
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	times, err := proc.TimesWithContext(s.host)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return times.User + times.System, nil
}

// inLine gives for how many seconds each thread of the containers' main processes
// stood in line for a CPU: the second figure of /proc/PID/task/TID/schedstat. It is
// empty where the kernel does not tell, or the processes cannot be seen.
func (s *signs) inLine(containers []container) map[string]float64 {
	all := map[string]float64{}
	for _, c := range containers {
		threads, err := filepath.Glob(filepath.Join(s.proc, strconv.Itoa(c.pid), "task", "*", "schedstat"))
		if err != nil || c.pid <= 0 {
			continue
		}
		for _, thread := range threads {
			data, err := os.ReadFile(thread)
			if err != nil {
				continue // the thread has ended since
			}
			var ran, waited uint64
			if _, err := fmt.Sscan(string(data), &ran, &waited); err == nil {
				all[thread] = time.Duration(waited).Seconds()
			}
		}
	}
	return all
}
