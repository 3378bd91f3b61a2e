package nodesim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// Pacing says what paces a herd.
type Pacing struct {
	// Limiter paces the herd. If it is nil, the herd is not paced.
	Limiter *throttle.Limiter
	// Observe is called with each measurement, four times a second. The first one covers a window in which nothing
	// started. If Observe is nil, nothing is measured.
	Observe func(now time.Time, m Measured)
	// Table, if given, says what starts take, and learns it. The limiter then also knows the pods' patience and the
	// use of the starts under way.
	Table *costs.Table
	// Wait is where pods wait for their turn.
	Wait Wait
	// StopAfter ends the run at this time, seconds. 0 means that the run ends by itself.
	StopAfter float64
	// StopAtKill ends the run as soon as a liveness probe kills.
	StopAtKill bool
}

// Wait is where pods wait for their turn.
type Wait int

const (
	// Gate means that all pods wait in the gate, so no slot is empty while a pod waits.
	Gate Wait = iota
	// Room means that pods without a reservation wait in the waiting room.
	Room
	// Refusal means that pods without a reservation are refused, and come back after a time.
	Refusal
)

// Result is the outcome of a run.
type Result struct {
	// Makespan is when the last pod was ready, seconds after the herd was created.
	Makespan float64
	// Kills counts the kills by liveness probes.
	Kills int
	// Pods are the lives of the herd's pods, in the order of their creation.
	Pods []Life
	// Measured are the measurements, one for each reading of the sensor.
	Measured []Measured
}

// tooLong is the time that ends a herd without progress, seconds.
const tooLong = 3600

// Run starts the herd and returns when all of it is ready, or after an hour. It sleeps meanwhile: call it in a bubble
// of testing/synctest.
func Run(s Scenario, by Pacing) Result {
	n := newNode(s, by.Limiter, time.Now())
	n.table, n.wait = by.Table, by.Wait
	eye := sensor{random: rand.New(rand.NewPCG(s.Seed, 2))}
	eye.fill(n.load)
	result, read := Result{}, 0.0
	if by.Observe == nil {
		read = math.Inf(1)
	}
	until := cmp.Or(by.StopAfter, tooLong)
	for n.unready > 0 && n.now < until && !(by.StopAtKill && n.kills > 0) {
		time.Sleep(seconds(min(n.next(), read-n.now)))
		now := time.Now()
		n.advance(now)
		if n.now < read-tiny {
			continue
		}
		read += readEvery
		m := eye.read(n.totals)
		n.count(&m)
		result.Measured = append(result.Measured, m)
		n.measure()
		by.Observe(now, m)
		n.admitted(now)
		n.share()
	}
	result.finish(n)
	return result
}

func (r *Result) finish(n *node) {
	for _, p := range n.pods {
		if p.name == "" {
			continue
		}
		r.Pods = append(r.Pods, p.life)
		r.Makespan = max(r.Makespan, p.life.Ready)
		r.Kills += p.life.Kills
	}
	if n.unready > 0 {
		r.Makespan = tooLong
	}
}

// fill gives the sensor a window before the herd.
func (s *sensor) fill(l load) {
	for i := -readings; i < 0; i++ {
		at := float64(i) * readEvery
		s.seen = append(s.seen, totals{at: at, cpu: at * l.cpu, cpuSome: at * l.cpuSome, ioSome: at * l.ioSome})
	}
}
