package adaptive

import "time"

// forgotten is how long nothing has to start or wait until a loss no longer counts.
const forgotten = time.Minute

// loss bounds the starts at a time after probes have killed some, as TCP bounds what is
// under way after it lost some of it: by half of it, and from then on by one more
// with each time that so many made it.
type loss struct {
	most   float64   // 0: no bound
	halved time.Time // when it was set last
	last   time.Time // what Sample.Lost was
	made   int       // what Sample.Made was
	asked  time.Time // when anything started or waited last
}

// observe takes a sample. full: the node was, so that a start that was lost may have
// been lost because of the others. Those admitted before the last bound was set say
// nothing of it.
func (l *loss) observe(s Sample, past *exposure, full bool) {
	lost := full && s.Lost.After(l.last) && s.Lost.After(l.halved)
	if s.Starting > 0 || s.Queued > 0 {
		l.asked = s.At
	}
	switch {
	case lost:
		l.most, l.halved = max(1, past.mean(s.At, s.At.Sub(s.Lost))/2), s.At
	case s.At.Sub(l.asked) > forgotten:
		l.most = 0
	case l.most > 0:
		l.most += float64(s.Made-l.made) / l.most
	}
	l.last, l.made = s.Lost, s.Made
}

// bound gives the limit, or less.
func (l *loss) bound(limit int) int {
	if l.most == 0 {
		return limit
	}
	return min(limit, int(l.most))
}
