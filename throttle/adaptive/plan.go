package adaptive

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

const (
	// A start that uses burnsFrom cores burns CPU. One that has readsFrom bytes to read reads, until it was measured
	// to move less than movesFrom bytes a second.
	burnsFrom, readsFrom, movesFrom = 0.1, 1 << 20, 64 << 10
	// measuredAfter is the age of a start from which on Use shows what it does.
	measuredAfter = 2 * time.Second
	// laterCPU is how many CPU-seconds an unknown start that idles is taken to burn later.
	laterCPU = 3
	// costMargin is how many times the expected CPU time a start of a kind that is not proven may take.
	costMargin = 5
	// mostPlanned is how many starts one plan lets in one by one, at most, and mostRest how many all at once: a forecast
	// takes time.
	mostPlanned, mostRest = 32, 512
)

// Use is what a start under way has used.
type Use struct {
	CPU   time.Duration // since it began
	Disk  int64         // bytes moved to and from disks since it began
	Cores float64       // CPUs that it kept busy or waited for, the mean over two seconds
	Reads float64       // bytes a second, the mean over two seconds
	// Waited is the part of Cores that it waited for. It means nothing unless WaitedKnown is true.
	Waited      float64
	WaitedKnown bool
}

// Start is a start that is under way or waits.
type Start struct {
	// Kind is equal for starts that are expected to take the same. It is empty if no pod watch tells kinds apart.
	Kind string
	// Cost is what a start of this kind takes; nil if that is not known.
	Cost *costs.Cost
	// Patience is how soon after its begin a probe may kill it; zero if no probe does.
	Patience time.Duration
	// Began is when it was admitted; zero if it waits.
	Began time.Time
	// Band is the part of the queue in which it waits. A start passes others of its band only.
	Band int
	Use
}

// Allow returns limit, how many starts may hold a slot at a time. underWay are the starts under way, and slots is how
// many slots they hold. waiting are all starts that wait, in their order. present are the waiting starts that could
// start now. passing are indices of present: these starts may start before all others of their band. The limit includes
// them.
func (c *Controller) Allow(at time.Time, underWay []Start, slots int, present, waiting []Start) (limit int, passing []int) {
	p := c.newPlan(at, 0, underWay)
	c.planned = c.settings.clamp(p.allows(slots, present, waiting))
	c.held = p.held
	return c.planned, p.passing
}

// AllowSoon returns the limit that Allow will return after a time if all that wait could start then, and those under way do
// until then what starts of their kind did. Of unknown kinds, it is the limit of now. It changes nothing.
func (c *Controller) AllowSoon(at time.Time, after time.Duration, underWay []Start, slots int, waiting []Start) (limit int) {
	return c.settings.clamp(c.newPlan(at, after, underWay).allows(slots, waiting, waiting))
}

// plan is the forecast of the starts under way, and of those that it lets join them.
type plan struct {
	*Controller
	at      time.Time
	free    float64 // cores that other work leaves
	goal    float64 // cores that starts are to keep busy or wait for, and half a core for rounding
	demands []demand
	burning float64 // cores that the starts under way keep busy, as measured
	readers int     // starts that read from the disk, or will
	kinds   map[string]*kind
	held    string // why the first one that must wait does; empty if none must
	passing []int  // indices of those that pass it
}

// kind is what was measured of the starts of one kind that are under way.
type kind struct {
	named  bool          // the pod watch knows the kind
	fresh  int           // starts that are not measured yet
	seen   int           // starts that are
	idlers int           // starts that neither burn CPU nor read, and those that are about to begin
	idles  time.Duration // how long ago the oldest of them began
	reads  float64       // bytes in a second that the fastest of them reads
	read   int64         // bytes that one of them has read at most
}

// lost reports whether a probe has killed a start since the herd began.
func (c *Controller) lost() bool { return c.loss.most > 0 && c.loss.halved.After(c.began) }

func (p *plan) kind(of string) *kind {
	if p.kinds[of] == nil {
		p.kinds[of] = &kind{named: of != ""}
	}
	return p.kinds[of]
}

// newPlan returns a plan of what the starts under way will do from some time after at on. What was measured is of at.
func (c *Controller) newPlan(at time.Time, after time.Duration, underWay []Start) *plan {
	p := &plan{Controller: c, at: at.Add(after), kinds: map[string]*kind{}}
	cores := float64(c.settings.Cores)
	p.free = max((1-nearly)*cores, cores-c.elsewhere())
	p.goal = max(1, cores*c.settings.goal()-c.elsewhere()) + 0.5
	c.disk.observe(underWay)
	for _, s := range underWay {
		k := p.kind(s.Kind)
		if at.Sub(s.Began) < measuredAfter {
			k.fresh++
		} else {
			k.seen++
		}
		k.reads, k.read = max(k.reads, s.Reads), max(k.read, s.Disk)
		if s.Cores >= burnsFrom {
			p.burning += s.Cores
		} else if s.Reads < readsFrom {
			k.idlers, k.idles = k.idlers+1, max(k.idles, at.Sub(s.Began))
		}
		p.add(c.demand(p.at, s))
	}
	p.foresee()
	for i := range p.demands {
		p.demands[i].anyway = p.demands[i].end
	}
	return p
}

func (p *plan) add(one demand) {
	p.demands = append(p.demands, one)
	if one.disk > 0 {
		p.readers++
	}
}

// allows returns how many may start at a time: all that wait join, or those before the first that must wait.
func (p *plan) allows(slots int, present, waiting []Start) int {
	if p.restFits(waiting) {
		return slots + len(waiting)
	}
	for i, s := range present {
		k, one := p.next(s)
		if slots < p.settings.Min {
			p.add(one)
		} else if p.held = p.holds(k, one, s.Patience, slots); p.held != "" || i == mostPlanned {
			if p.held != "" {
				p.pass(present, i)
			}
			if i == 0 && len(p.passing) == 0 {
				return min(slots, p.Limit())
			}
			return slots + len(p.passing)
		}
		k.fresh++
		k.idlers++
		slots++
	}
	if len(present) == 0 {
		return p.Limit()
	}
	return max(slots, p.Limit())
}

// next returns the kind of a start that waits, and what it will do.
func (p *plan) next(s Start) (*kind, demand) {
	k := p.kind(s.Kind)
	s.Reads, s.Disk = k.reads, k.read
	return k, p.demand(p.at, s)
}

// pass lets starts join although present[first], before them, must wait. They delay none of the starts before them,
// because they idle until those have burned their CPU time. They are of the band of present[first]. An unknown start is
// taken to burn laterCPU.
func (p *plan) pass(present []Start, first int) {
	before, forecasts := 0.0, first // CPU-seconds of those that wait before
	for i := first; i < len(present) && present[i].Band == present[first].Band && forecasts < mostPlanned; i++ {
		k, one := p.next(present[i])
		if !one.known {
			before += laterCPU
			continue
		}
		if one.disk == 0 && p.free*one.idle > before+p.burnsBefore(one.idle) {
			forecasts++
			if p.holds(k, one, present[i].Patience, 0) == "" {
				p.passing = append(p.passing, i)
				continue
			}
		}
		before += one.cpu
	}
}

// burnsBefore returns the CPU-seconds of the starts under way, and of those that join, that burn before a time.
func (p *plan) burnsBefore(time float64) (cpu float64) {
	for _, one := range p.demands {
		if one.idle < time {
			cpu += one.cpu
		}
	}
	return cpu
}

// holds returns why a start of a kind cannot join those that hold the slots. Where it can, it joins them, and the
// reason is empty.
func (p *plan) holds(k *kind, one demand, patience time.Duration, slots int) (why string) {
	switch {
	case !one.known && slots >= p.Limit():
		return "the kind of the next start is unknown"
	case !one.known && k.named && k.seen == 0 && p.burning+float64(k.fresh+1) > p.goal:
		return "the kind of the next start is unknown, and the first of it are being measured"
	case !one.known && k.named && patience > 0 && float64(k.idlers+1) > p.mostIdlers(patience, k.idles):
		return "the kind of the next start is unknown, and those of it under way idle: if more of them burned CPU later, probes would kill them"
	case one.known && one.disk > 0 && p.readers >= p.settings.startsAtGoal():
		return "as many starts read from the disk as may at a time"
	}
	without := *p
	p.add(one)
	p.foresee()
	switch joins := p.demands[len(p.demands)-1]; {
	case one.known && joins.crowd > p.goal:
		why = fmt.Sprintf("with the next start, %.1f cores would be wanted at a time, of %.1f", joins.crowd, p.goal)
	case !p.inTime():
		why = "with the next start, a probe would kill a pod that starts"
	default:
		return ""
	}
	*p = without
	return why
}

// mostIdlers returns how many unknown starts of one kind may idle at a time: as many as end in time if all of them burn
// CPU together later. A measurement shows only after measuredAfter that they burn, so that time is lost. The oldest of
// them has idled for a time. Starts that join now burn that much later than it does, so more may join. One that idles
// for longer than its patience is not killed, so it says nothing of those that join.
func (p *plan) mostIdlers(patience, idles time.Duration) float64 {
	burn := patienceUsed*(patience+min(patience, idles)).Seconds() - measuredAfter.Seconds()
	return max(float64(p.settings.Cores), p.free*burn/laterCPU)
}

// restFits reports whether all that wait can start at once: each is of a known kind, and all end in time, also if those
// of a kind that is not proven take more CPU time than expected.
func (p *plan) restFits(waiting []Start) bool {
	if len(waiting) == 0 || len(waiting) > mostRest {
		return false
	}
	all := plan{Controller: p.Controller, free: p.free, demands: slices.Clone(p.demands)}
	for _, s := range waiting {
		one := p.demand(p.at, s)
		if !one.known {
			return false
		}
		all.demands = append(all.demands, one)
	}
	for i := range all.demands {
		one := &all.demands[i]
		if !one.proven {
			one.cpu *= costMargin
		}
		one.until = one.restUntil
	}
	all.foresee()
	return all.inTime()
}

// foresee computes when each start ends. The disk does what it was seen to do, and at least what one start can read.
func (p *plan) foresee() {
	disk := p.disk.most
	for _, one := range p.demands {
		disk = max(disk, one.reads)
	}
	foresee(p.demands, p.free, disk)
}

// inTime reports whether those that join end in time, and make no start under way late that would end in time without
// them.
func (p *plan) inTime() bool {
	return !slices.ContainsFunc(p.demands, func(one demand) bool {
		return one.until > 0 && one.end > max(one.until, one.anyway+nothing)
	})
}

// said describes the last plan for people. It is empty where the plan is what feedback found.
func (c *Controller) said() string {
	if c.planned == 0 || c.planned == c.Limit() {
		return ""
	}
	return fmt.Sprintf("; %d by the forecast of the starts: %s", c.planned, cmp.Or(c.held, "all may start"))
}

// disk is what was seen of the disks of the node.
type disk struct {
	most   float64 // bytes a second that all starts together moved at most
	stream float64 // bytes a second that one start moved at most
}

func (d *disk) observe(underWay []Start) {
	all := 0.0
	for _, s := range underWay {
		all += s.Reads
		d.stream = max(d.stream, s.Reads)
	}
	d.most = max(d.most, all)
}
