package waiter

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

const (
	// A process without a daemon asks again after retryMin plus up to retrySpread,
	// so that not all processes ask at once.
	retryMin    = 100 * time.Millisecond
	retrySpread = 150 * time.Millisecond

	// afterAlone is the longest time between two processes that leave after AloneMost.
	afterAlone = 250 * time.Millisecond

	// RuntimeGone is the reason of an outcome that is Orphaned.
	RuntimeGone = "the container runtime that ran this hook is gone"
)

// Start is the start that a process waits for.
type Start struct {
	// Socket is the path of the daemon's socket.
	Socket string
	// Hello identifies the start. The Waiter sets its Deadline, and moves its Since with the wall clock.
	Hello wire.Hello
	// Deadline is when the process leaves in any case. It has a monotonic clock reading.
	Deadline time.Time
	// Forecast says when the process leaves (its start continues unpaced) if no daemon decides, until a daemon sends
	// another. Zero means at once. It never leaves after Deadline.
	Forecast wire.Answer
	// AloneMost is how long the process waits once no daemon decides. After it, the processes leave one right after the
	// other. Zero means that it waits until the time of the forecast.
	AloneMost time.Duration
	// Parent is the ID of the process that ran this one. It does not count if there is a Host.
	Parent int
	// Host is the operating system; nil means the one of this process.
	Host Host
	// Check, if it is not nil, is called when the wait begins, and again when CheckEvery has passed since the last
	// call. A result that is not nil ends the wait and is its outcome.
	Check      func(w *Waiter) *Outcome
	CheckEvery time.Duration
}

// Outcome is the result of a wait.
type Outcome struct {
	// Starts reports whether the start may continue.
	Starts bool
	// Unpaced reports whether it continues without the decision of a daemon.
	Unpaced bool
	// Orphaned reports whether the process that ran this one has ended.
	Orphaned bool
	// Reason is the reason of the daemon, or why no daemon decided.
	Reason string
}

// Waiter is one wait. Its times have monotonic clock readings, so it does not depend on
// changes of the wall clock. Make it with [New]. It is not safe for concurrent use.
type Waiter struct {
	start      Start
	host       Host
	deadline   time.Time
	forecast   wire.Answer // its LeaveAt is never after deadline
	aloneSince time.Time   // when the last daemon stopped deciding; zero if one decides
	door       door
	retryAt    time.Time // when to ask again, without a daemon
	checkAt    time.Time // when to call Check again
	lost       error     // why there is no daemon
	contacted  bool      // a daemon has sent something
	silence    time.Duration
	silentAt   time.Time // when the daemon will have sent nothing for silence
	silent     bool      // the last daemon was silent; a new connection counts as silent until it sends something
	daemon     daemon
}

// New returns a waiter for s that begins at now. It starts nothing.
func New(s Start, now time.Time) *Waiter {
	host := s.Host
	if host == nil {
		host = kernel{parent: watchParent(s.Parent)}
	}
	if !s.Hello.Since.IsZero() {
		s.Hello.Since = now.Add(s.Hello.Since.Sub(now))
	}
	w := &Waiter{start: s, host: host, deadline: s.Deadline, silence: wire.SilenceMost}
	w.daemon.host, w.daemon.fd = host, -1
	w.door = newDoor(host, s.Socket)
	w.follow(s.Forecast, now)
	return w
}

// follow makes a forecast count.
func (w *Waiter) follow(f wire.Answer, now time.Time) {
	w.forecast = f
	w.forecast.LeaveAt = earlier(now.Add(f.LeaveAt.Sub(now)), w.deadline)
}

// LastForecast returns the last forecast that a daemon sent, or else the forecast of the Start. contacted reports
// whether a daemon has sent anything yet.
func (w *Waiter) LastForecast() (forecast wire.Answer, contacted bool) {
	return w.forecast, w.contacted
}

// Alone reports whether no daemon decides: no daemon can be reached, or it hangs.
func (w *Waiter) Alone() bool { return w.daemon.fd < 0 || w.silent }

// Wait blocks until the start is decided.
func (w *Waiter) Wait() Outcome {
	w.connect(time.Now())
	for {
		now := time.Now()
		if w.start.Check != nil && !now.Before(w.checkAt) {
			w.checkAt = now.Add(w.start.CheckEvery)
			if o := w.start.Check(w); o != nil {
				return *o
			}
		}
		switch {
		case w.host.Orphaned():
			return Outcome{Orphaned: true, Reason: RuntimeGone}
		case !now.Before(w.deadline):
			return w.unpaced("no decision before the deadline")
		case w.daemon.fd >= 0 && !now.Before(w.silentAt):
			w.disconnect(errSilent, now)
			w.silent = true
			continue
		case w.Alone() && w.door.passes(now, w.due(), w.pace(now)):
			return w.unpaced("no daemon")
		case w.daemon.fd < 0 && !now.Before(w.retryAt):
			w.connect(now)
		}
		orphaned, answered, err := w.poll(time.Now())
		switch {
		case err != nil:
			return Outcome{Starts: true, Unpaced: true, Reason: "cannot wait: " + err.Error()}
		case orphaned:
			return Outcome{Orphaned: true, Reason: RuntimeGone}
		case answered:
			if o, decided := w.listen(); decided {
				return o
			}
		}
	}
}

func (w *Waiter) unpaced(why string) Outcome {
	return Outcome{Starts: true, Unpaced: true, Reason: why + w.because()}
}

// due returns when the process leaves if no daemon decides: at the time that it was sent, or, if it
// noticed later that no daemon decides, after the processes before it have left.
func (w *Waiter) due() time.Time {
	turn := w.aloneSince.Add(time.Duration(w.forecast.Place) * w.forecast.Pace)
	due := earlier(later(w.forecast.LeaveAt, turn), w.deadline)
	if most, ok := w.aloneUntil(); ok {
		due = earlier(due, most)
	}
	return due
}

// aloneUntil returns when the process has waited for AloneMost without a daemon. ok is false if there is no such time.
func (w *Waiter) aloneUntil() (until time.Time, ok bool) {
	return w.aloneSince.Add(w.start.AloneMost), w.start.AloneMost > 0 && !w.aloneSince.IsZero()
}

// pace returns the time between two processes that leave if no daemon decides.
func (w *Waiter) pace(now time.Time) time.Duration {
	if until, ok := w.aloneUntil(); ok && !now.Before(until) {
		return min(w.forecast.Pace, afterAlone)
	}
	return w.forecast.Pace
}

func (w *Waiter) connect(now time.Time) {
	w.silentAt = now.Add(w.silence)
	hello := w.start.Hello
	// Times are sent on the present wall clock, which the daemon reads, too.
	hello.Deadline = now.Round(0).Add(w.deadline.Sub(now))
	if !hello.Since.IsZero() {
		hello.Since = now.Round(0).Add(hello.Since.Sub(now))
	}
	if err := w.daemon.dial(w.start.Socket, wire.AppendHello(nil, hello)); err != nil {
		w.disconnect(err, now)
	}
}

func (w *Waiter) disconnect(why error, now time.Time) {
	w.daemon.close()
	if w.aloneSince.IsZero() {
		w.aloneSince = now
	}
	w.lost = why
	w.retryAt = now.Add(retryMin + time.Duration(now.Nanosecond())%retrySpread)
}

func (w *Waiter) because() string {
	if !w.Alone() || w.lost == nil {
		return ""
	}
	return " at " + w.start.Socket + ": " + w.lost.Error()
}

// listen reads what the daemon has sent, and reports whether that includes the decision.
func (w *Waiter) listen() (o Outcome, decided bool) {
	now := time.Now()
	err := w.daemon.receive(func(a wire.Answer) bool {
		w.contacted, w.silent, w.silentAt, w.aloneSince = true, false, now.Add(w.silence), time.Time{}
		w.door.release() // the daemon decides
		switch a.Kind {
		case wire.Go, wire.Abort:
			o, decided = Outcome{Starts: a.Kind == wire.Go, Reason: a.Reason}, true
		case wire.Forecast:
			w.follow(a, now)
		}
		return !decided
	})
	if err != nil {
		w.disconnect(err, now)
	}
	return o, decided
}

// next returns when there is something to do even if nothing becomes readable.
func (w *Waiter) next(now time.Time) time.Time {
	next := earlier(w.deadline, w.silentAt)
	if w.daemon.fd < 0 {
		next = earlier(w.deadline, w.retryAt)
	}
	if w.Alone() {
		next = earlier(next, w.door.next(w.due(), w.pace(now)))
		if until, ok := w.aloneUntil(); ok && now.Before(until) {
			next = earlier(next, until)
		}
	}
	if w.start.Check != nil {
		next = earlier(next, w.checkAt)
	}
	return next
}

// poll blocks until the parent has ended or the daemon has sent something, or until next. It returns which happened.
func (w *Waiter) poll(now time.Time) (orphaned, answered bool, err error) {
	return w.host.Await(w.daemon.fd, max(w.next(now).Sub(now), 0))
}

// earlier returns the earlier of two times. A zero time counts as the earliest.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
