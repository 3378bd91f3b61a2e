package adaptive

import (
	"fmt"
	"math"
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
	// leastFree is the share of the CPUs that starts are taken to get whatever other work does: it may share them evenly.
	leastFree = 0.2
	// gap is how many seconds a start may wait for a CPU beside what the goal grants it: a core is idle for so long between
	// one start and the next.
	gap = 0.5
	// While no start waits for the disks, these are taken to serve unseen times what they were seen to serve.
	unseen = 3
	// A remainder of no more than nothing is none: sums of floating point numbers are not exact.
	nothing = 1e-9
)

// Use is what a start under way has used.
type Use struct {
	CPU     time.Duration // CPU time since it began
	Delayed time.Duration // time in which it waited for a CPU since it began, as far as that is measured
	Disk    int64         // bytes moved to and from disks since it began
	Cores   float64       // CPUs that it kept busy or waited for, as a mean over two seconds
	Reads   float64       // bytes a second moved to and from disks, as a mean over two seconds
	// Waited is how many of these CPUs it waited for. It means nothing unless WaitedKnown is true.
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
// many slots they hold. waiting are the starts that could start now, in their order. passing has the indices in waiting of
// the starts that may start before others, which are held. limit counts them. passing is empty if those that may start
// come first anyway.
func (c *Controller) Allow(at time.Time, underWay []Start, slots int, waiting []Start) (limit int, passing []int) {
	p := c.newPlan(at, 0, underWay, waiting)
	limit, passing = p.allows(slots, waiting)
	c.planned, c.held = c.settings.clamp(limit), p.held
	return c.planned, passing
}

// AllowSoon returns the limit that Allow will return at some time within after, if starts do until then what those of their
// kind did. Starts of unknown kinds count as they were measured until now. It changes no limit.
func (c *Controller) AllowSoon(at time.Time, after time.Duration, underWay []Start, slots int, waiting []Start) (limit int) {
	limit, _ = c.newPlan(at, after, underWay, waiting).allows(slots, waiting)
	return c.settings.clamp(limit)
}

// plan says when the starts under way get what they need of the node, and then those that wait, in their order.
type plan struct {
	*Controller
	after   float64         // seconds within which those that wait may begin
	free    float64         // cores that other work leaves
	bears   float64         // cores that starts are to keep busy or to wait for, and half a core for rounding
	burning float64         // cores that the starts under way keep busy, as measured
	kinds   map[string]kind // by Start.Kind
	demands []demand        // of the starts that wait
	cpus    timetable
	disks   timetable
	spare   [parts]float64 // seconds that may be taken from any start that ends in this part of the timetables or later
	readers float64        // seconds that may be taken from any start that reads
	held    string         // why the first start that must wait is held; empty if none must wait
}

// kind is what was measured of the starts of one kind that are under way.
type kind struct {
	fresh    int           // how many are not measured yet
	measured bool          // one is
	idlers   int           // how many neither burn CPU nor read, or are about to begin
	idles    time.Duration // how long the oldest of them has idled
}

// booking is what a start is given of the CPUs and the disks, seconds.
type booking struct {
	begins float64 // from now until it begins to burn CPU
	end    float64 // from now until it ends
	waits  float64 // how much later it ends than alone, if it begins plan.after from now
	leaves float64 // how much later it may end by its probe
}

func (c *Controller) newPlan(at time.Time, after time.Duration, underWay, waiting []Start) *plan {
	cores := float64(c.settings.Cores)
	p := &plan{
		Controller: c, kinds: map[string]kind{}, readers: math.Inf(1),
		free:  max(leastFree*cores, cores-c.elsewhere()),
		bears: max(1, cores*c.settings.goal()-c.elsewhere()) + 0.5,
	}
	c.disk.observe(underWay)
	for _, s := range underWay {
		age := at.Sub(s.Began)
		p.observe(s, age)
		p.demands = append(p.demands, c.demand(s, age.Seconds()))
	}
	for _, s := range waiting {
		s.Use = Use{}
		p.demands = append(p.demands, c.demand(s, 0))
	}
	covers := 30.0 // seconds
	for _, one := range p.demands {
		covers = max(covers, 3*p.alone(one))
	}
	for i := range p.spare {
		p.spare[i] = math.Inf(1)
	}
	p.cpus.part = (covers + after.Seconds()) / parts
	p.disks.part = p.cpus.part
	for _, one := range p.demands[:len(underWay)] {
		p.join(one, p.book(one))
	}
	p.demands, p.after = p.demands[len(underWay):], after.Seconds()
	return p
}

// observe takes what was measured of a start under way.
func (p *plan) observe(s Start, age time.Duration) {
	k := p.kinds[s.Kind]
	if age < measuredAfter {
		k.fresh++
	} else {
		k.measured = true
	}
	if s.Cores >= burnsFrom {
		p.burning += s.Cores
	} else if s.Reads < readsFrom {
		k.idlers, k.idles = k.idlers+1, max(k.idles, age-s.Delayed)
	}
	p.kinds[s.Kind] = k
}

// alone returns how long a start takes from now on if it has all of what other work leaves, seconds.
func (p *plan) alone(one demand) float64 {
	return max(one.idle, one.reading()) + one.cpu/min(one.cores, p.free)
}

// book gives a start what it needs of what is left.
func (p *plan) book(one demand) booking {
	b := booking{begins: one.idle, leaves: one.until - p.alone(one)}
	if one.disk > 0 {
		b.begins = max(b.begins, p.disks.give(0, one.disk, one.reads, max(one.reads, p.disk.serves())))
	}
	b.end = p.cpus.give(b.begins, one.cpu, one.cores, p.free)
	b.waits = max(0, b.end-p.alone(one)-p.after)
	return b
}

// join lets a start join those under way.
func (p *plan) join(one demand, b booking) {
	spare := max(0, b.leaves-b.waits)
	if one.disk > 0 {
		p.readers = min(p.readers, spare)
	}
	for i := p.cpus.index(b.end); i >= 0 && p.spare[i] > spare; i-- {
		p.spare[i] = spare
	}
}

// allows returns how many may start at a time, and which of them pass others: a start joins unless it is held, and one
// that is held holds those behind it of unknown kinds and of later bands.
func (p *plan) allows(slots int, waiting []Start) (limit int, passing []int) {
	var may []int // those that may start
	first := 0    // the one that is held first
	for i, s := range waiting {
		if p.held != "" && s.Band != waiting[first].Band {
			break
		}
		if why := p.holds(s, p.demands[i], slots+len(may)); why == "" {
			may = append(may, i)
		} else if p.held == "" {
			p.held, first = why, i
		}
	}
	switch limit = slots + len(may); {
	case len(waiting) == 0:
		return p.Limit(), nil
	case p.held == "":
		return max(limit, p.Limit()), nil
	case len(may) == 0:
		return min(limit, p.Limit()), nil
	case may[len(may)-1] < first:
		return limit, nil // none passes
	default:
		return limit, may // with those before the first that is held: where another limit is lower, they keep their order
	}
}

// holds returns why a start cannot join those that hold the slots. Where it can, it joins them, and the reason is empty.
// It is given what it needs in any case: those behind it get what it leaves.
func (p *plan) holds(s Start, one demand, slots int) (why string) {
	k := p.kinds[s.Kind]
	if !one.known && slots >= p.settings.Min {
		if why = p.holdsUnknown(s, k, slots); why != "" {
			one.cpu = laterCPU
		}
	}
	b := p.book(one)
	queue := (p.settings.goal() - 1) * float64(p.settings.Cores) / p.free // starts that wait, for each core that is free
	grants := (p.settings.goal()-1)*one.reading() + queue*one.cpu/one.cores + gap
	leaves := min(b.leaves, p.spare[p.cpus.index(b.begins)])
	if one.disk > 0 { // it delays others from now on that read
		leaves = min(leaves, p.readers)
	}
	switch {
	case why != "" || slots < p.settings.Min:
	case one.known && b.waits > grants:
		why = fmt.Sprintf("with those before it, the next start would wait %.1f s for CPUs and disks, of %.1f", b.waits, grants)
	case b.waits > leaves+nothing:
		why = "with the next start, a probe would kill a pod that starts"
	}
	if why == "" {
		p.join(one, b)
		k.fresh++
		k.idlers++
		p.kinds[s.Kind] = k
	}
	return why
}

// holdsUnknown returns why a start of an unknown kind must wait; empty if it need not.
func (p *plan) holdsUnknown(s Start, k kind, slots int) (why string) {
	switch {
	case p.held != "" || slots >= p.Limit():
		return "the kind of the next start is unknown"
	case s.Kind != "" && !k.measured && p.burning+float64(k.fresh+1) > p.bears:
		return "the kind of the next start is unknown, and the first of it are being measured"
	case s.Kind != "" && s.Patience > 0 && float64(k.idlers+1) > p.mostIdlers(s.Patience, k.idles):
		return "the kind of the next start is unknown, and those of it under way idle: if more of them burned CPU later, probes would kill them"
	default:
		return ""
	}
}

// mostIdlers returns how many unknown starts of one kind may idle at a time: as many as end in time if all of them burn
// CPU together later. A measurement shows only after measuredAfter that they burn, so that time is lost. The oldest of
// them has idled for a time. Starts that join now burn that much later than it does, so more may join. One that idles
// for longer than its patience is not killed, so it says nothing of those that join.
func (p *plan) mostIdlers(patience, idles time.Duration) float64 {
	burn := patienceUsed*(patience+min(patience, idles)).Seconds() - measuredAfter.Seconds()
	return max(float64(p.settings.Cores), p.free*burn/laterCPU)
}

// disk is what was seen of the disks of the node in this herd.
type disk struct {
	most    float64   // bytes a second that all starts together moved at most
	stream  float64   // bytes a second that a single start moved at most
	waited  bool      // starts may have waited for the disks within lasting
	pressed time.Time // when they may have waited last; zero if they did not
}

func (d *disk) observe(underWay []Start) {
	all := 0.0
	for _, s := range underWay {
		all += s.Reads
		d.stream = max(d.stream, s.Reads)
	}
	d.most = max(d.most, all)
}

// serves returns the bytes a second that the disks are taken to serve.
func (d *disk) serves() float64 {
	if d.waited {
		return d.most
	}
	return unseen * d.most
}
