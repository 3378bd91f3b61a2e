package adaptive

import "time"

// loss limits the starts at a time after probes have killed some, as TCP limits what is under way after a loss: it
// halves their number, and adds one each time that as many starts as the limit have succeeded.
type loss struct {
	most   float64   // starts at a time; 0 if there is no limit
	halved time.Time // when it was last halved
	last   time.Time // Sample.Lost of the last sample
	made   int       // Sample.Made of the last sample
	asked  time.Time // when a pod started or waited last
}

// observe takes a sample. full: the node was full, so a start may have been killed because of the others. Starts that
// were admitted before the limit was last halved do not count.
func (l *loss) observe(s Sample, past *exposure, full bool) {
	lost := full && s.Lost.After(l.last) && s.Lost.After(l.halved)
	if s.Starting > 0 || s.Queued {
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
