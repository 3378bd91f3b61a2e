package throttle

// hold is a part of a pod in a group that may hold it.
type hold struct {
	part
	runs  bool // a bound of Running may
	never bool // and always will
}

// classKey gives the groups that may hold the pod, and a key which is the same for
// all that the same bounds of the same groups concern: those that a bound
// always holds apart from the others. Empty: no policy holds it.
func (m *member) classKey() (string, []hold) {
	if m == nil {
		return "", nil
	}
	var key []byte
	var holds []hold
	for _, p := range m.parts {
		if p.bypass || p.group.limits == noLimits {
			continue
		}
		limits, from := p.group.limits, len(key)
		h, starts := hold{part: p}, false
		key = append(append(append(append(key, p.group.key.Policy...), 0), p.group.key.Group...), 0)
		key, starts = limits.starting.touches(key, p.asks)
		if !m.running {
			key = append(key, 1)
			key, h.runs = limits.running.touches(key, p.asks)
			_, h.never = limits.running.exceeds(&usage{}, p.asks)
		}
		if !h.runs && !starts && !p.group.startsApart() {
			key = key[:from]
			continue
		}
		_, late := limits.starting.exceeds(&usage{}, p.asks)
		for _, apart := range []bool{h.never, late} {
			if apart {
				key = append(key, '!')
			}
			key = append(key, 0)
		}
		holds = append(holds, h)
	}
	return string(key), holds
}

// runningHolds tells whether a bound of Running holds the ticket.
func (t *Ticket) runningHolds() (Held, bool) {
	for i := range t.holds {
		if h := &t.holds[i]; h.runs {
			if held, holds := h.group.runningHolds(h.asks); holds {
				return held, true
			}
		}
	}
	return Held{}, false
}

// policyHolds tells whether any policy holds the ticket: a bound of Running before
// any other limit.
func (t *Ticket) policyHolds() (Held, bool) {
	if held, holds := t.runningHolds(); holds {
		return held, true
	}
	for i := range t.holds {
		h := &t.holds[i]
		if held, holds := h.group.startingHolds(h.asks); holds {
			return held, true
		}
	}
	return Held{}, false
}
