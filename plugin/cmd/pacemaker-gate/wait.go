package main

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

const (
	// defaultWait is the deadline of a hook that was given none.
	defaultWait = 100 * time.Second
	// longestWait bounds a deadline of which nobody says when it was set.
	longestWait = time.Hour
	// A hook without a daemon asks again after retryMin, and up to retrySpread
	// more, so that many do not ask at once.
	retryMin    = 100 * time.Millisecond
	retrySpread = 150 * time.Millisecond

	runtimeGone = "the container runtime that ran this hook is gone"
)

// waiter is one waiting hook. Its times carry Go's monotonic reading: from its
// beginning on, a step of the wall clock changes nothing.
type waiter struct {
	args     wire.Args
	parent   parent
	deadline time.Time
	leaveAt  time.Time // without a daemon; never after deadline
	position int       // among those that leave then, from 1; 0: not told
	pace     time.Duration
	lonely   time.Time // since when no daemon decides
	door     door
	retryAt  time.Time // without a daemon: when to ask again
	lost     error     // why there is no daemon
	silence  time.Duration
	silentAt time.Time // when the daemon will have said nothing for silence
	silent   bool      // the last daemon did not: without a word, the next is no better
	daemon   daemon
	creation creation
}

func newWaiter(args wire.Args, parent parent, now time.Time) *waiter {
	w := &waiter{args: args, parent: parent, deadline: deadline(args, now), silence: wire.SilenceMost}
	w.daemon.fd = -1
	w.door = newDoor(args.Socket)
	w.creation = creation{id: args.ContainerID, stdin: int32(unix.Stdin)}
	w.leave(args.LeaveAt, now)
	return w
}

// deadline turns the wall clock's time into one of this process. A clock that
// was set back since the deadline was set must not make the wait longer.
func deadline(args wire.Args, now time.Time) time.Time {
	if args.Deadline.IsZero() {
		return now.Add(defaultWait)
	}
	most := longestWait
	if !args.Made.IsZero() {
		most = args.Deadline.Sub(args.Made)
	}
	return now.Add(min(args.Deadline.Sub(now), most))
}

// leave sets the time to leave if there is no daemon; the zero time means now.
func (w *waiter) leave(at, now time.Time) {
	w.leaveAt = earlier(now.Add(at.Sub(now)), w.deadline)
}

// wait returns the exit code when the start is decided.
func (w *waiter) wait() int {
	w.connect(time.Now())
	for {
		now := time.Now()
		switch {
		case w.parent.gone():
			return w.orphaned()
		case !now.Before(w.deadline):
			return startUnpaced("no decision before the deadline" + w.because())
		case w.daemon.fd >= 0 && !now.Before(w.silentAt):
			w.disconnect(errSilent, now)
			w.silent = true
			continue
		case w.alone() && w.door.passes(now, w.due(), w.pace):
			return startUnpaced("no daemon" + w.because())
		case w.daemon.fd < 0 && !now.Before(w.retryAt):
			w.connect(now)
		}
		ready, err := w.poll(time.Now())
		switch {
		case err != nil:
			return startUnpaced("cannot wait: " + err.Error())
		case ready.parent:
			return w.orphaned()
		case ready.stdin:
			w.creation.read()
		case ready.daemon:
			if code, decided := w.listen(); decided {
				return code
			}
		}
	}
}

// orphaned ends a hook whose container nobody makes any more.
func (w *waiter) orphaned() int {
	w.creation.remove()
	return startNothing(runtimeGone)
}

// due is when the hook leaves where no daemon decides: at the time that it was told, or, if
// it found out late, when those before it that found out with it have left.
func (w *waiter) due() time.Time {
	due := w.leaveAt
	if turn := w.lonely.Add(time.Duration(w.position) * w.pace); due.Before(turn) {
		due = turn
	}
	return earlier(due, w.deadline)
}

// alone tells whether no daemon decides: there is none, or it hangs.
func (w *waiter) alone() bool { return w.daemon.fd < 0 || w.silent }

func (w *waiter) connect(now time.Time) {
	w.silentAt = now.Add(w.silence)
	// The deadline goes out on the wall clock as it is now: the daemon reads the same.
	wall := now.Round(0).Add(w.deadline.Sub(now))
	hello := wire.AppendHello(nil, wire.Hello{
		PodUID: w.args.PodUID, ContainerID: w.args.ContainerID, Name: w.args.Name,
		Since: w.args.Since, Deadline: wall, Paced: true,
	})
	if err := w.daemon.dial(w.args.Socket, hello); err != nil {
		w.disconnect(err, now)
	}
}

func (w *waiter) disconnect(why error, now time.Time) {
	w.daemon.close()
	if w.lonely.IsZero() {
		w.lonely = now
	}
	w.lost = why
	w.retryAt = now.Add(retryMin + time.Duration(now.Nanosecond())%retrySpread)
}

func (w *waiter) because() string {
	if !w.alone() || w.lost == nil {
		return ""
	}
	return " at " + w.args.Socket + ": " + w.lost.Error()
}

// listen takes what the daemon said, and tells whether that was the decision.
func (w *waiter) listen() (code int, decided bool) {
	now := time.Now()
	err := w.daemon.receive(func(a wire.Answer) bool {
		w.silent, w.silentAt, w.lonely = false, now.Add(w.silence), time.Time{}
		w.door.leave() // the daemon decides
		switch a.Kind {
		case wire.Go:
			code, decided = exitStart, true
		case wire.Abort:
			code, decided = startNothing(a.Reason), true
		case wire.Turn:
			w.leave(a.LeaveAt, now)
			w.position, w.pace = a.Position, a.Pace
		}
		return !decided
	})
	if err != nil {
		w.disconnect(err, now)
	}
	return code, decided
}

// next is the next time at which there is something to do unasked.
func (w *waiter) next(now time.Time) time.Time {
	next := earlier(w.deadline, w.silentAt)
	if w.daemon.fd < 0 {
		next = earlier(w.deadline, w.retryAt)
	}
	if w.alone() {
		next = earlier(next, w.door.next(w.due(), w.pace))
	}
	if w.parent.fd < 0 {
		next = earlier(next, now.Add(parentCheck))
	}
	return next
}

// ready is what ended a poll.
type ready struct{ parent, stdin, daemon bool }

// poll sleeps until something is ready or the next time that matters.
func (w *waiter) poll(now time.Time) (ready, error) {
	timeout := unix.NsecToTimespec(int64(max(w.next(now).Sub(now), 0)))
	fds := [...]unix.PollFd{ // the kernel passes over negative ones
		{Fd: w.parent.fd, Events: unix.POLLIN},
		{Fd: int32(w.daemon.fd), Events: unix.POLLIN},
		{Fd: w.creation.stdin, Events: unix.POLLIN},
	}
	_, err := unix.Ppoll(fds[:], &timeout, nil)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return ready{}, err
	}
	return ready{parent: fds[0].Revents != 0, daemon: fds[1].Revents != 0, stdin: fds[2].Revents != 0}, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
