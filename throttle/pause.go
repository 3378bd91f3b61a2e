package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Pause keeps every start waiting until a time, for something that the limiter does not know. The zero value holds none.
type Pause struct {
	// For is what it is for, for people. The limiter does not interpret it.
	For string
	// Since is when it began. Until is when it ends by itself: a caller that goes away holds no pod for ever.
	Since, Until time.Time
}

// Put gives a limiter this Pause instead of the present one. The limiter then admits the pods that may start because of
// the change. While the Pause lasts, no ticket is admitted: not in its turn, not because its MaxWait or the time of its
// process is over, and not by a loan. A ticket gets a reservation only if its process can wait for longer than the Pause
// lasts. Exempt pods and adopted starts start as before. The caller holds the lock that guards the limiter.
func (p Pause) Put(now time.Time, l *Limiter) {
	now = l.at(now)
	if p == l.admission.pause { // the caller of Advance may put it each time, and a change would wake it again
		return
	}
	l.admission.pause = p
	l.admit(now)
}

// held returns the Pause as the limit, or the zero value if it does not hold.
func (p Pause) held(now time.Time) Held {
	if !now.Before(p.Until) {
		return Held{}
	}
	return Held{
		Reason: reasons.StartAfter, For: p.For, Until: p.Until,
		Measured: p.Until.Sub(now).Seconds(), Threshold: p.Until.Sub(p.Since).Seconds(),
	}
}
