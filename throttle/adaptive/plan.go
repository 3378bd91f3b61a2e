package adaptive

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

const (
	// A start that uses burnsFrom cores burns CPU, and one that has readsFrom bytes to read reads.
	burnsFrom, readsFrom = 0.1, 1 << 20
	// measuredAfter is how old a start is when Use says all of what it does.
	measuredAfter = 2 * time.Second
	// someStreams is how many readers for each core a disk is taken to serve of which nothing was seen.
	someStreams = 0.5
	// mostPlanned bounds how many are let in at a time one by one, and mostRest how many all at once, for the time
	// that it takes to foresee it.
	mostPlanned, mostRest = 64, 512
)

// Use is what a start that is under way has used.
type Use struct {
	CPU   time.Duration // since it began
	Disk  int64         // bytes moved to and from disks since it began
	Cores float64       // CPUs that it kept busy or stood in line for, the mean over two seconds
	Reads float64       // bytes in a second, the mean over two seconds
}

// Start is a start that is under way, or is to come.
type Start struct {
	// Kind is the same of starts that are expected to take the same.
	Kind string
	// Expected is what such a start takes; nil: nobody knows.
	Expected *costs.Cost
	// Patience is how long after it began a probe kills it; zero: none does.
	Patience time.Duration
	// Began is when it was admitted; zero: it waits.
	Began time.Time
	Use
}

// Allow gives how many may start at a time, by what is known of the starts under way, which hold so
// many slots, and of those that wait, in their order. Of these, present could start now.
func (c *Controller) Allow(at time.Time, underWay []Start, slots int, present, waiting []Start) (limit int) {
	p := c.newPlan(at, underWay)
	c.planned = c.settings.bound(p.allows(slots, present, waiting))
	c.held = p.held
	return c.planned
}

// plan is what is foreseen of the starts under way, and of those that are to be let in beside them.
type plan struct {
	*Controller
	at      time.Time
	free    float64 // cores that other work leaves
	goal    float64 // cores that starts shall keep busy, or stand in line for
	courses []course
	burning float64 // cores that the starts under way were measured to keep busy
	reading float64 // bytes in a second that those which read could
	kinds   map[string]*kind
	held    string // why the first that has to wait does; empty: none has to
}

// kind is what is seen of the starts of one kind that are under way.
type kind struct {
	named bool    // somebody knows it
	fresh int     // so many are not measured yet
	seen  int     // and so many are
	reads float64 // bytes in a second that one of them does
}

// lost tells whether a probe has killed a start since the herd began.
func (c *Controller) lost() bool { return c.loss.most > 0 && c.loss.halved.After(c.began) }

func (p *plan) kind(of string) *kind {
	if p.kinds[of] == nil {
		p.kinds[of] = &kind{named: of != ""}
	}
	return p.kinds[of]
}

func (c *Controller) newPlan(at time.Time, underWay []Start) *plan {
	p := &plan{
		Controller: c, at: at, kinds: map[string]*kind{},
	}
	cores := float64(c.settings.Cores)
	p.free = max(0.1*cores, cores-c.elsewhere())
	p.goal = max(1, cores*c.settings.goal()-c.elsewhere()) + 0.5
	c.disk.observe(at, underWay)
	for _, s := range underWay {
		k := p.kind(s.Kind)
		if at.Sub(s.Began) < measuredAfter {
			k.fresh++
		} else {
			k.seen++
		}
		k.reads = max(k.reads, s.Reads)
		if s.Cores >= burnsFrom {
			p.burning += s.Cores
		}
		p.add(c.course(at, s))
	}
	return p
}

func (p *plan) add(one course) {
	p.courses = append(p.courses, one)
	if one.disk > 0 {
		p.reading += one.reads
	}
}

// allows gives how many may start at a time: with all that wait, or with those up to the first that has to.
func (p *plan) allows(slots int, present, waiting []Start) int {
	if p.restFits(waiting) {
		return slots + len(waiting)
	}
	for i, s := range present {
		k := p.kind(s.Kind)
		s.Reads = k.reads
		one := p.course(p.at, s)
		if slots < p.settings.Min {
			p.add(one)
		} else if p.held = p.holds(k, one, slots); p.held != "" || i == mostPlanned {
			if i == 0 {
				return min(slots, p.Limit())
			}
			return slots
		}
		k.fresh++
		slots++
	}
	if len(present) == 0 {
		return p.Limit()
	}
	return max(slots, p.Limit())
}

// holds says why a start of a kind cannot join so many; empty: it can, and has joined them.
func (p *plan) holds(k *kind, one course, slots int) string {
	switch {
	case !one.known && slots >= p.Limit():
		return "of the next, nothing is known"
	case !one.known && k.named && k.seen == 0 && p.burning+float64(k.fresh+1) > p.goal:
		return "of the next nothing is known, and the first like it are being measured"
	case one.known && one.disk > 0 && p.diskFull(one.reads):
		return "those under way read as much as the disk gives"
	}
	p.add(one)
	p.foresee()
	if joins := p.courses[len(p.courses)-1]; one.known && joins.crowd > p.goal {
		return fmt.Sprintf("with the next, %.1f cores would be wanted at a time, of %.1f", joins.crowd, p.goal)
	}
	if !p.inTime() {
		return "with the next, a probe would kill a pod that starts"
	}
	return ""
}

// diskFull tells whether those that read could have the disk do more, with one that could read so much, than one more
// than it was seen to do, and than the goal says.
func (p *plan) diskFull(reads float64) bool {
	serves := p.disk.serves(p.at, reads, p.settings.Cores)
	return p.reading > max(serves, p.settings.goal()*serves-reads)
}

// restFits tells whether all that wait can be let in at once: starts of the kind of each have ended as
// was expected, and all end in time.
func (p *plan) restFits(waiting []Start) bool {
	if len(waiting) == 0 || len(waiting) > mostRest {
		return false
	}
	all := plan{Controller: p.Controller, free: p.free, courses: slices.Clone(p.courses)}
	for _, s := range waiting {
		one := p.course(p.at, s)
		if !one.proven {
			return false
		}
		all.add(one)
	}
	all.foresee()
	return all.inTime()
}

// foresee takes the disk to do what it was seen to do, and what one of the starts can.
func (p *plan) foresee() {
	disk := p.disk.most
	for _, one := range p.courses {
		disk = max(disk, one.reads)
	}
	foresee(p.courses, p.free, disk)
}

// inTime tells whether all end in time that can.
func (p *plan) inTime() bool {
	return !slices.ContainsFunc(p.courses, func(one course) bool { return one.until > 0 && one.end > one.until })
}

// said says what was planned, for people; empty: what the feedback found.
func (c *Controller) said() string {
	if c.planned == 0 || c.planned == c.Limit() {
		return ""
	}
	return fmt.Sprintf("; %d by what is known of the starts: %s", c.planned, cmp.Or(c.held, "all may start"))
}

// disk is what was seen of the disks of the node.
type disk struct {
	most   float64   // bytes in a second that all starts moved
	stream float64   // and one of them
	since  time.Time // when any did first; zero: none did
}

func (d *disk) observe(at time.Time, underWay []Start) {
	all := 0.0
	for _, s := range underWay {
		all += s.Reads
		d.stream = max(d.stream, s.Reads)
	}
	d.most = max(d.most, all)
	if d.most > 0 && d.since.IsZero() {
		d.since = at
	}
}

// serves gives how many bytes in a second the disks do, as far as was seen, for starts that read so many each.
func (d *disk) serves(at time.Time, reads float64, cores int) float64 {
	if d.since.IsZero() || at.Sub(d.since) < measuredAfter {
		return max(d.most, reads, someStreams*float64(cores)*reads)
	}
	return max(d.most, reads)
}
