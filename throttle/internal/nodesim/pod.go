package nodesim

import (
	"math"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// A phase is one thing that a pod does.
type phase struct {
	does activity
	left float64 // seconds: of the clock, of CPU time or of a stream of the disk
}

type activity int

const (
	idles activity = iota
	burns
	reads
	waits  // for the limiter; has no end of its own
	serves // for ever
)

// pod is one pod of the node. It goes through the phases of its stage.
type pod struct {
	kind   Kind
	name   string
	key    string // under which the cost of its starts is learned
	stage  stage
	phases []phase
	ticket *throttle.Ticket
	life   Life
	probe  float64 // phase of the readiness probe, seconds
	killAt float64 // when the liveness probe kills; +Inf: never
	rate   float64 // of its phase, for each second of the clock
	took   course
}

type stage int

const (
	settingUp stage = iota
	inRoom          // the waiting room
	waiting
	launching
	starting
	probing
	ready
)

// Life is what happened to one pod, in seconds since the herd was created.
type Life struct {
	Kind                            string
	Created, Started, Served, Ready float64
	Kills                           int
}

func (p *pod) does() activity {
	if len(p.phases) == 0 {
		return idles
	}
	return p.phases[0].does
}

// left is how long the phase still takes at the present rate, seconds.
func (p *pod) left() float64 {
	if len(p.phases) == 0 || p.rate <= 0 {
		return math.Inf(1)
	}
	return p.phases[0].left / p.rate
}

// turn is when it gets its part of the CPUs.
func (p *pod) turn() Share {
	if p.does() == serves {
		return p.kind.Share
	}
	return Evenly
}

// most is the CPU that it can use at most, cores.
func (p *pod) most() float64 {
	switch {
	case p.does() == serves:
		return p.kind.ServeCores
	case p.stage == starting && p.kind.CPULimit > 0:
		return min(1, p.kind.CPULimit)
	default:
		return 1
	}
}

// throttled is the share of time in which its own CPU limit holds it back.
func (p *pod) throttled() float64 {
	if p.stage != starting || p.kind.CPULimit <= 0 || p.does() != burns {
		return 0
	}
	return 1 - min(1, p.kind.CPULimit)
}

// startPhases are the phases from the start of its process until it serves.
func (p *pod) startPhases() []phase {
	return []phase{{reads, p.kind.LoadSeconds}, {idles, p.kind.Wait}, {reads, p.kind.IOSeconds}, {burns, p.kind.CPUSeconds}}
}

func seconds(s float64) time.Duration { return time.Duration(math.Ceil(s * float64(time.Second))) }
