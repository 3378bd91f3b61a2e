package leases

import "time"

// health is whether the API server answers.
type health struct {
	reads, writes line
	probes        map[verb]time.Time
}

// line is how one kind of requests goes.
type line struct {
	failing time.Time // since the first that failed after the last that did not; zero: none
	err     error
}

func (l *line) works() { *l = line{} }

func (l *line) fails(since time.Time, err error) {
	if l.failing.IsZero() {
		l.failing = since
	}
	l.err = err
}

// heard takes over how a call went.
func (h *health) heard(v verb, sent time.Time, err error, faulty bool) {
	delete(h.probes, v)
	l := &h.writes
	if v == probeReads || v == lookSlot {
		l = &h.reads
	}
	if faulty {
		l.fails(sent, err)
		return
	}
	l.works()
	if v != probeWrites {
		h.reads.works()
	}
}

// open tells whether nobody is to be held any more, or when that will be so; the zero
// time: the API server answers.
func (h *health) open(now time.Time, after time.Duration) (bool, time.Time) {
	var since time.Time
	for _, l := range []line{h.reads, h.writes} {
		if !l.failing.IsZero() && (since.IsZero() || l.failing.Before(since)) {
			since = l.failing
		}
	}
	if since.IsZero() {
		return false, time.Time{}
	}
	return now.Sub(since) >= after, since.Add(after)
}

// fault is why requests fail; nil: they do not.
func (h *health) fault() error {
	if h.reads.err != nil {
		return h.reads.err
	}
	return h.writes.err
}

// probe asks whether the API server is there where nothing else does.
func (p *planner) probe(now time.Time, alarm *alarm) {
	h := &p.health
	if h.probes == nil {
		h.probes = map[verb]time.Time{}
	}
	every := max(leastProbe, time.Duration(p.nodes())*perNode)
	kinds := []verb{probeReads}
	if h.writes.err != nil {
		kinds = append(kinds, probeWrites)
	}
	for _, v := range kinds {
		at, planned := h.probes[v]
		switch {
		case !planned:
			at = now.Add(every/2 + time.Duration(p.rand.Int64N(int64(every))))
			h.probes[v] = at
			alarm.at(at)
		case at.IsZero(): // its answer is awaited
		case now.Before(at):
			alarm.at(at)
		default:
			h.probes[v] = time.Time{}
			p.stats.calls[v]++
			p.calls = append(p.calls, p.question(now, v))
		}
	}
}

// contact notes that the API server was heard by a watch: there is no need to ask.
func (h *health) contact() {
	h.reads.works()
	if at, planned := h.probes[probeReads]; planned && !at.IsZero() {
		delete(h.probes, probeReads)
	}
}

// question asks about the first slot of any group.
func (p *planner) question(now time.Time, v verb) call {
	c := call{verb: v, sent: now}
	for id, g := range p.groups {
		c.key, c.policy = g.key, g.policy.UID
		c.slot = record{id: id, name: leaseName(g.key.Policy, id, 0)}
		break
	}
	return c
}
