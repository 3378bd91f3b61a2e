package starts

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Busy reports whether a pod starts, and whether one waits, as [throttle.Limiter.Busy] counts them.
func (l *Ledger) Busy(now time.Time) (starting, waiting bool) {
	l.lock()
	defer l.unlock()
	return l.entries.limiter.Busy(now)
}

// Observe replaces the readings of the sensors, and admits the pods that may start because of that.
func (l *Ledger) Observe(now time.Time, s throttle.Signals) {
	l.lock()
	defer l.unlock()
	l.entries.limiter.Observe(now, s)
}

// SetClaims sets how many pods of the group may start at a time. Below zero means any number.
func (l *Ledger) SetClaims(now time.Time, key throttle.GroupKey, starts int) {
	l.lock()
	defer l.unlock()
	l.entries.limiter.SetClaims(now, key, starts)
}

// StartAnyway admits the pod at once, whatever the limits say. It returns false if the pod does not wait.
func (l *Ledger) StartAnyway(now time.Time, uid string, reason reasons.Reason) bool {
	l.lock()
	defer l.unlock()
	return l.entries.limiter.StartAnyway(now, uid, reason)
}

// Groups returns the counts of each group of a policy that has pods or claims, in the order of the keys.
func (l *Ledger) Groups(now time.Time) []throttle.GroupView {
	l.lock()
	defer l.unlock()
	return l.entries.limiter.Groups(now)
}

// Snapshot returns the state of the limiter.
func (l *Ledger) Snapshot(now time.Time) throttle.Snapshot {
	l.lock()
	defer l.unlock()
	return l.entries.limiter.Snapshot(now)
}

// Recent returns the last 256 starts that have ended, the latest at the end.
func (l *Ledger) Recent() []throttle.TicketView {
	l.lock()
	defer l.unlock()
	return l.entries.limiter.Recent()
}

// View returns the latest start of a pod; ok is false if there is none.
func (l *Ledger) View(now time.Time, uid string) (v throttle.TicketView, ok bool) {
	l.lock()
	defer l.unlock()
	return l.entries.limiter.View(now, uid)
}

// waiting returns the tickets that wait, and live also those that start. Both are in no order.
func (l *Ledger) waiting() []*throttle.Ticket {
	l.lock()
	defer l.unlock()
	return slices.Clone(l.entries.limiter.Waiting())
}

func (l *Ledger) live() []*throttle.Ticket {
	l.lock()
	defer l.unlock()
	return slices.Concat(l.entries.limiter.Waiting(), l.entries.limiter.Starting())
}

// configure puts settings of the limiter in force.
func (l *Ledger) configure(now time.Time, s throttle.Settings) {
	l.lock()
	defer l.unlock()
	l.entries.limiter.Configure(now, s)
	l.entries.resort.configure(s)
}

// setFrozen freezes the queue or releases it.
func (l *Ledger) setFrozen(now time.Time, frozen bool) {
	l.lock()
	defer l.unlock()
	l.entries.limiter.SetFrozen(now, frozen)
}

// setProfiles sets what pods are expected to take, by UID.
func (l *Ledger) setProfiles(now time.Time, of map[string]throttle.Profile) {
	l.lock()
	defer l.unlock()
	l.entries.limiter.SetProfiles(now, of)
}

// setProgress sets what a start has used since its admission, unless use is nil, and since when it makes no progress, or
// zero if it makes some.
func (l *Ledger) setProgress(now time.Time, uid string, use *adaptive.Use, stalledSince time.Time) {
	l.lock()
	defer l.unlock()
	if use != nil {
		l.entries.limiter.SetUse(uid, *use)
	}
	l.entries.limiter.SetStalled(now, uid, stalledSince)
}
