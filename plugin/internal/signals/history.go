package signals

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// defaultWindow is the time that a reading spans, unless Prepare changes it.
const defaultWindow = 2 * time.Second

// longest is the most time that a reading spans, or two windows if that is more.
const longest = 2 * time.Minute

// history keeps the samples with which later ones are compared. They are at least a tenth of the
// window apart, so that 16 of them span it at any rate of sampling.
type history struct {
	window time.Duration
	kept   [16]moment // the oldest first
	n      int
}

// add keeps a sample, and returns the readings of all signals.
func (h *history) add(now moment) throttle.Signals {
	var signals throttle.Signals
	for i := range signals {
		signals[i] = h.reading(throttle.Signal(i), now)
	}
	h.keep(now)
	return signals
}

func (h *history) reading(signal throttle.Signal, now moment) throttle.Reading {
	c := now.counters[signal]
	if c.err != nil {
		return throttle.Reading{From: now.at, To: now.at, Err: c.err}
	}
	if signal == throttle.SignalLoad {
		return throttle.Reading{Value: c.used, From: now.at.Add(-loadEvery), To: now.at}
	}
	base := h.base(signal, now.at)
	if base == nil {
		return throttle.Reading{}
	}
	since := base.counters[signal]
	value, err := c.share(since, signal)
	if err != nil {
		if c.used < since.used || c.total < since.total {
			h.forget(signal, err)
		}
		return throttle.Reading{From: base.at, To: now.at, Err: err}
	}
	r := throttle.Reading{Value: value, From: base.at, To: now.at}
	if signal == throttle.SignalCPU {
		r.Refusals = 100 * (now.refused - base.refused).Seconds() / (c.total - since.total)
	}
	return r
}

// base returns the sample with which a signal is compared, or nil if there is none yet.
func (h *history) base(signal throttle.Signal, at time.Time) *moment {
	var old, young *moment // the youngest that is a window old, the oldest that is not
	for i := range h.kept[:h.n] {
		m := &h.kept[i]
		if m.counters[signal].err != nil {
			continue
		}
		switch age := at.Sub(m.at); {
		case age > max(longest, 2*h.window):
		case age >= h.window:
			old = m
		case age >= shortest && young == nil:
			young = m
		}
	}
	if old == nil || (young != nil && at.Sub(old.at) > 2*h.window) {
		return young // the time before was idle
	}
	return old
}

// keep keeps a sample for later ones, unless it is too near to the last, which may have overtaken it.
func (h *history) keep(m moment) {
	if h.n > 0 && m.at.Sub(h.kept[h.n-1].at).Abs() < h.window/10 {
		return
	}
	if h.n == len(h.kept) {
		copy(h.kept[:], h.kept[1:])
		h.n--
	}
	h.kept[h.n] = m
	h.n++
}

// forget makes the kept samples unusable for one signal.
func (h *history) forget(signal throttle.Signal, err error) {
	for i := range h.kept[:h.n] {
		h.kept[i].counters[signal] = counter{err: err}
	}
}
