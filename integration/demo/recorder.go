package demo

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// doing is what a pod does now.
type doing string

const (
	asking   doing = "waiting"  // requested, no process yet
	starting doing = "starting" // the process burns CPU
	ready    doing = "ready"
	backOff  doing = "back-off" // killed, waits for its next restart
)

// podView is one pod at one moment, for the screen.
type podView struct {
	name    string
	doing   doing
	cpu     time.Duration // CPU time of the starting process
	kills   int
	refused int
}

// recorder records what happens to a herd. It is safe for concurrent use.
type recorder struct {
	name  string
	limit int
	begin time.Time

	mu sync.Mutex
	// guarded by mu
	pods []recordedPod
	over chan struct{} // closed once every pod was ready at the same time, or the herd was hopeless
}

type recordedPod struct {
	timeline.Pod
	doing doing
	cpu   time.Duration // CPU time of the latest process, until it was ready
	spent time.Duration // CPU time of the processes before
}

func newRecorder(name string, limit int, h Herd) *recorder {
	r := &recorder{name: name, limit: limit, begin: time.Now(), over: make(chan struct{})}
	for i := range h.Pods {
		r.pods = append(r.pods, recordedPod{Pod: timeline.Pod{Name: h.podName(i)}, doing: asking})
	}
	return r
}

// update changes pod i under the lock.
func (r *recorder) update(i int, change func(p *recordedPod)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.pods[i])
	r.tellOverLocked()
}

func (r *recorder) tellOverLocked() {
	allReady := true
	var pods []timeline.Pod
	for _, p := range r.pods {
		allReady = allReady && p.doing == ready
		pods = append(pods, p.Pod)
	}
	if !allReady && !timeline.Hopeless(pods) {
		return
	}
	select {
	case <-r.over:
	default:
		close(r.over)
	}
}

func (r *recorder) refused(i int) {
	r.update(i, func(p *recordedPod) { p.Refused++ })
}

func (r *recorder) began(i int, at time.Time) {
	r.update(i, func(p *recordedPod) {
		p.Starts = append(p.Starts, timeline.Start{Began: at.Sub(r.begin)})
		p.doing, p.cpu, p.spent = starting, 0, p.spent+p.cpu
	})
}

func (r *recorder) used(i int, cpu time.Duration) {
	r.update(i, func(p *recordedPod) { p.cpu = max(p.cpu, cpu) })
}

func (r *recorder) becameReady(i int, at time.Time) {
	r.update(i, func(p *recordedPod) {
		p.Starts[len(p.Starts)-1].Ready = at.Sub(r.begin)
		p.doing = ready
	})
}

func (r *recorder) ended(i int, at time.Time, killed bool) {
	r.update(i, func(p *recordedPod) {
		last := &p.Starts[len(p.Starts)-1]
		last.Ended, last.Killed = at.Sub(r.begin), killed
		p.doing = backOff
	})
}

// views returns the present state of all pods.
func (r *recorder) views() []podView {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []podView
	for _, p := range r.pods {
		all = append(all, podView{name: p.Name, doing: p.doing, cpu: p.cpu, kills: p.Kills(), refused: p.Refused})
	}
	return all
}

// burned returns the CPU time that all processes together have used to get ready.
func (r *recorder) burned() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum time.Duration
	for _, p := range r.pods {
		sum += p.spent + p.cpu
	}
	return sum
}

// finish returns the run until at. It leaves out later events.
func (r *recorder) finish(at time.Time) timeline.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := timeline.Run{Name: r.name, Limit: r.limit, Length: at.Sub(r.begin)}
	for _, p := range r.pods {
		run.Pods = append(run.Pods, p.Pod.Until(run.Length))
	}
	return run
}
