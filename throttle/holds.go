package throttle

import "encoding/binary"

// hold is a part of a pod in a group that may hold it.
type hold struct {
	part
	runs  bool // a bound of Running may
	never bool // and always will
	paced bool // a pacer may
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
		h, from := hold{part: p}, len(key)
		if key = h.appendKey(key, m.running); len(key) == from {
			continue
		}
		holds = append(holds, h)
	}
	return string(key), holds
}

// appendKey appends what of the group may hold the pod, and takes note of it; nothing
// where nothing does. Bounds of Running and pacers do not hold one that runs: it counts
// already, and would be held by itself.
func (h *hold) appendKey(key []byte, running bool) []byte {
	limits, from := h.group.limits, len(key)
	for _, name := range []string{h.group.key.Policy, h.group.key.Group} {
		key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
	}
	key, starts := limits.starting.touches(append(key, 's'), h.asks)
	key = append(key, 'r')
	if !running {
		key, h.runs = limits.running.touches(key, h.asks)
		_, h.never = limits.running.exceeds(&usage{}, h.asks)
		h.paced = limits.given.Pacer.Kind != ""
	}
	if !h.runs && !starts && !h.paced && !limits.given.Claims {
		return key[:from]
	}
	_, late := limits.starting.exceeds(&usage{}, h.asks)
	for _, apart := range []bool{h.never, late, h.paced} {
		if apart {
			key = append(key, '!')
		}
		key = append(key, 0)
	}
	return key
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

// held tells whether any policy holds the ticket.
func (t *Ticket) held() bool {
	if len(t.holds) == 0 {
		return false
	}
	_, held := t.policyHolds()
	return held
}

// policyHolds gives by what measure a policy holds the ticket: a bound of Running before
// any other limit.
func (t *Ticket) policyHolds() (Held, bool) {
	if held, holds := t.runningHolds(); holds {
		return held, true
	}
	for i := range t.holds {
		h := &t.holds[i]
		if held, holds := h.group.startingHolds(h.asks, h.paced); holds {
			return held, true
		}
	}
	return Held{}, false
}
