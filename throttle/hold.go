package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Hold keeps every start waiting until a time, for something that the limiter does not know. The zero value holds none.
type Hold struct {
	// For is what it is for, for people. The limiter does not interpret it.
	For string
	// Since is when it began. Until is when it ends by itself: a caller that goes away holds no pod for ever.
	Since, Until time.Time
}

// Put gives a limiter this Hold instead of the present one. The limiter then admits the pods that may start because of
// the change. While the Hold lasts, no ticket is admitted: not in its turn, not because its MaxWait or the time of its
// process is over, and not by a loan. A ticket gets a reservation only if its process can wait for longer than the Hold
// lasts. Exempt pods and adopted starts start as before. The caller holds the lock that guards the limiter.
func (h Hold) Put(now time.Time, l *Limiter) {
	now = l.at(now)
	if h == l.admission.hold { // the caller of Advance may put it each time, and a change would wake it again
		return
	}
	l.admission.hold = h
	l.admit(now)
}

// held returns the Hold as the limit, or the zero value if it does not hold.
func (h Hold) held(now time.Time) Held {
	if !now.Before(h.Until) {
		return Held{}
	}
	return Held{
		Reason: reasons.StartAfter, For: h.For, Until: h.Until,
		Measured: h.Until.Sub(now).Seconds(), Threshold: h.Until.Sub(h.Since).Seconds(),
	}
}
