package wire

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is the kind of an answer.
type Kind int

const (
	// Forecast sets when the hook leaves if the daemon goes away.
	Forecast Kind = iota + 1
	// Go is the verdict that the process may start.
	Go
	// Abort is the verdict that the process must not start.
	Abort
	// Alive means that the daemon still decides starts.
	Alive
)

const (
	// AliveEvery is the time between two alive lines.
	AliveEvery = 5 * time.Second
	// SilenceMost is how long a daemon may send nothing before the hook treats it as
	// gone.
	SilenceMost = 3 * AliveEvery
)

// Answer is one line of the daemon.
type Answer struct {
	Kind Kind
	// LeaveAt, Place and Pace are set for Forecast. Place is the place of the
	// hook among the hooks that wait, counted from 1; 0 if it is not known. Pace is the time between
	// two hooks that leave, in whole milliseconds; 0 if it is not known.
	LeaveAt time.Time
	Place   int
	Pace    time.Duration
	// Reason is set for Go and Abort: a reason word, and possibly an explanation
	// for people after a colon. It may be empty.
	Reason string
}

// AppendAnswer appends a to b as a line. It shortens a reason that is too long, and
// writes control characters as spaces.
func AppendAnswer(b []byte, a Answer) []byte {
	switch a.Kind {
	case Forecast:
		b = append(b, "turn "...)
		b = appendTime(b, a.LeaveAt)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(min(max(a.Place, 0), math.MaxInt32)), 10)
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

// ParseAnswer parses a line of the daemon without its newline. The error wraps
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
	words := strings.Split(rest, " ")
	if len(words) != 2 && len(words) != 3 {
		return Answer{}, malformed("turn " + strconv.Quote(clip(rest, 40)))
	}
	at, err := parseTime("leave-at", words[0])
	if err != nil {
		return Answer{}, err
	}
	var numbers [2]int64 // place and pace
	for i, word := range words[1:] {
		n, ok := parseNumber(word, math.MaxInt32)
		if !ok {
			return Answer{}, malformed("place or pace " + strconv.Quote(clip(word, 40)))
		}
		numbers[i] = n
	}
	return Answer{Kind: Forecast, LeaveAt: at, Place: int(numbers[0]), Pace: time.Duration(numbers[1]) * time.Millisecond}, nil
}

// cleanReason makes a reason safe to print on one line of a terminal or an event.
func cleanReason(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.TrimSpace(clip(s, maxReason))
}
