package main

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

const (
	// defaultWait is the deadline of a hook that was given none.
	defaultWait = 100 * time.Second
	// longestWait bounds a deadline of which it is not known when it was set.
	longestWait = time.Hour
)

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
