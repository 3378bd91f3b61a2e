package wire

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is which of its lines the daemon sent.
type Kind int

const (
	// Turn tells when to leave if the daemon goes away.
	Turn Kind = iota + 1
	// Go is the verdict that the process may start.
	Go
	// Abort is the verdict that nothing may start here.
	Abort
	// Alive says that the daemon still decides.
	Alive
)

const (
	// AliveEvery is the time between two alive lines.
	AliveEvery = 5 * time.Second
	// SilenceMost is how long a daemon may say nothing before the hook takes it for
	// one that is gone.
	SilenceMost = 3 * AliveEvery
)

// Answer is one line of the daemon.
type Answer struct {
	Kind Kind
	// LeaveAt, Position and Pace are set for Turn. Position is the
	// hook's among those that wait, counted from 1; 0: not told. Pace is the time between
	// two of them that leave, in whole milliseconds; 0: not told.
	LeaveAt  time.Time
	Position int
	Pace     time.Duration
	// Reason is set for Go and Abort: a reason word, and after a colon words for
	// the reader of the pod's events. It may be empty.
	Reason string
}

// AppendAnswer appends a to b as a line. A reason is cut to what a line holds,
// and what would end the line early is written as a space.
func AppendAnswer(b []byte, a Answer) []byte {
	switch a.Kind {
	case Turn:
		b = append(b, "turn "...)
		b = millis.append(b, a.LeaveAt)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(min(max(a.Position, 0), math.MaxInt32)), 10)
		if a.Pace >= time.Millisecond {
			b = append(b, ' ')
			b = strconv.AppendInt(b, min(a.Pace.Milliseconds(), math.MaxInt32), 10)
		}
	case Go:
		b = append(b, "go "+cleanReason(a.Reason)...)
	case Abort:
		b = append(b, "abort "+cleanReason(a.Reason)...)
	case Alive:
		b = append(b, "alive"...)
	}
	return append(b, '\n')
}

// ParseAnswer reads a line of the daemon without its newline. The error wraps
// [ErrMalformed].
func ParseAnswer(line string) (Answer, error) {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "go":
		return Answer{Kind: Go, Reason: cleanReason(rest)}, nil
	case "abort":
		return Answer{Kind: Abort, Reason: cleanReason(rest)}, nil
	case "turn":
		return parseTurn(rest)
	case "alive":
		return Answer{Kind: Alive}, nil
	}
	return Answer{}, malformed("answer " + strconv.Quote(clip(verb, 40)))
}

func parseTurn(rest string) (Answer, error) {
	milli, position, ok := strings.Cut(rest, " ")
	if !ok {
		return Answer{}, malformed("turn without position")
	}
	position, pace, paced := strings.Cut(position, " ")
	var every int64
	if paced {
		if every, ok = parseNumber(pace, math.MaxInt32); !ok {
			return Answer{}, malformed("pace " + strconv.Quote(clip(pace, 40)))
		}
	}
	at, err := millis.parse("leave-at", milli)
	if err != nil {
		return Answer{}, err
	}
	n, ok := parseNumber(position, math.MaxInt32)
	if !ok {
		return Answer{}, malformed("position " + strconv.Quote(clip(position, 40)))
	}
	return Answer{Kind: Turn, LeaveAt: at, Position: int(n), Pace: time.Duration(every) * time.Millisecond}, nil
}

// cleanReason makes a reason fit for one line that a person reads on a terminal
// or in an event.
func cleanReason(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.TrimSpace(clip(s, maxReason))
}
