package adaptive

import "time"

// loss bounds the starts at a time after probes have killed some, as TCP bounds what is under way after a loss: it halves
// their number, and adds one each time that as many starts as the bound have succeeded.
type loss struct {
	most   float64   // 0: no bound
	halved time.Time // when it was last halved
	last   time.Time // Sample.Lost of the last sample
	made   int       // Sample.Made of the last sample
	asked  time.Time // when a pod started or waited last
}

// observe takes a sample. full: the node was full, so a start may have been killed because of the others. Starts that
// were admitted before the bound was last halved do not count.
func (l *loss) observe(s Sample, past *exposure, full bool) {
	lost := full && s.Lost.After(l.last) && s.Lost.After(l.halved)
	if s.Starting > 0 || s.Queued > 0 {
		l.asked = s.At
	}
	switch {
	case lost:
		l.most, l.halved = max(1, past.mean(s.At, s.At.Sub(s.Lost))/2), s.At
	case s.At.Sub(l.asked) > remembered:
		l.most = 0
	case l.most > 0:
		l.most += float64(s.Made-l.made) / l.most
	}
	l.last, l.made = s.Lost, s.Made
}

// bound returns limit, or the bound where that is less.
func (l *loss) bound(limit int) int {
	if l.most == 0 {
		return limit
	}
	return min(limit, int(l.most))
}
