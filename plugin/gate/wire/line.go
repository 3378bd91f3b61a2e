package wire

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxLine is the longest line either end may send, in bytes, with its newline.
	MaxLine = 1024

	maxID     = 128 // pod UID, container ID
	maxName   = 320 // a namespace has at most 63 bytes, a pod's name 253
	maxReason = 512

	version = "1"
)

var (
	// ErrMalformed says that a line or an argument list is not what this package writes.
	ErrMalformed = errors.New("malformed")
	// ErrVersion says that a hello is of a version that this end does not speak.
	ErrVersion = errors.New("unknown protocol version")
)

// malformed is ErrMalformed with what is wrong; fmt would cost the hook memory.
type malformed string

func (m malformed) Error() string        { return ErrMalformed.Error() + ": " + string(m) }
func (m malformed) Is(target error) bool { return target == ErrMalformed }

// Hello is what a hook says first.
type Hello struct {
	// PodUID and ContainerID name the start; never empty.
	PodUID, ContainerID string
	// Name is the pod's namespace/name, for people; may be empty.
	Name string
	// Since is when the pod joined the queue, to the microsecond: pods join within one
	// millisecond, and their order is to be found again. Zero when not known.
	Since time.Time
	// Deadline is when the hook stops waiting by itself and lets the process
	// start; zero when not known.
	Deadline time.Time
	// Room says that it waits in the waiting room: nothing of the pod exists yet but its
	// network, and ContainerID is that of the sandbox to come.
	Room bool
}

// AppendHello appends h to b as a line. The caller makes sure that h holds
// valid values, as those of parsed [Args] are.
func AppendHello(b []byte, h Hello) []byte {
	b = append(b, "wait "+version+" pod="+h.PodUID+" container="+h.ContainerID...)
	if h.Name != "" {
		b = append(b, " name="+h.Name...)
	}
	b = append(b, " since="...)
	b = micros.append(b, h.Since)
	b = append(b, " deadline="...)
	b = millis.append(b, h.Deadline)
	if h.Room {
		b = append(b, " room=1"...)
	}
	return append(b, '\n')
}

// ParseHello reads a hello line without its newline. The error is [ErrVersion]
// for another version's hello, else it wraps [ErrMalformed]. Keys that it does
// not know are passed over, so that a later hook can say more.
func ParseHello(line string) (Hello, error) {
	if len(line) >= MaxLine {
		return Hello{}, malformed("line too long")
	}
	words := strings.Split(line, " ")
	if words[0] != "wait" || len(words) < 2 {
		return Hello{}, malformed("not a hello")
	}
	if words[1] != version {
		return Hello{}, ErrVersion
	}
	var h Hello
	seen := make(map[string]bool, len(words))
	for _, word := range words[2:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok || seen[key] {
			return Hello{}, malformed("hello field " + strconv.Quote(word))
		}
		seen[key] = true
		if err := h.set(key, value); err != nil {
			return Hello{}, err
		}
	}
	if h.PodUID == "" || h.ContainerID == "" {
		return Hello{}, malformed("hello without pod or container")
	}
	return h, nil
}

func (h *Hello) set(key, value string) error {
	var err error
	switch key {
	case "pod":
		h.PodUID, err = parseText(key, value, maxID)
	case "container":
		h.ContainerID, err = parseText(key, value, maxID)
	case "name":
		h.Name, err = parseText(key, value, maxName)
	case "since":
		h.Since, err = micros.parse(key, value)
	case "deadline":
		h.Deadline, err = millis.parse(key, value)
	case "room":
		h.Room = value == "1"
	}
	return err
}

func parseText(key, value string, most int) (string, error) {
	if value == "" || len(value) > most {
		return "", malformed(key + " has " + strconv.Itoa(len(value)) + " bytes, must have 1 to " + strconv.Itoa(most))
	}
	for i := range len(value) {
		if value[i] <= ' ' || value[i] > '~' {
			return "", malformed(key + " " + strconv.Quote(value) + " must be printable ASCII without spaces")
		}
	}
	return value, nil
}

// unit is how a time is written: a number of it since the Unix epoch, 0 for the zero time.
type unit struct {
	name  string
	most  int64 // the year 9999, far from the ends of int64
	since func(time.Time) int64
	at    func(int64) time.Time
}

var (
	millis = unit{"milliseconds", 253402300799999, time.Time.UnixMilli, time.UnixMilli}
	micros = unit{"microseconds", 253402300799999999, time.Time.UnixMicro, time.UnixMicro}
)

func (u unit) parse(key, value string) (time.Time, error) {
	n, ok := parseNumber(value, u.most)
	if !ok {
		return time.Time{}, malformed(key + " " + strconv.Quote(clip(value, 40)) + " must be a time in Unix " + u.name)
	}
	if n == 0 {
		return time.Time{}, nil
	}
	return u.at(n), nil
}

func (u unit) append(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, '0')
	}
	return strconv.AppendInt(b, min(max(u.since(t), 1), u.most), 10)
}

// parseNumber reads plain decimal digits: no sign, at most the given number.
func parseNumber(s string, most int64) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= most && s[0] >= '0' && s[0] <= '9'
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
