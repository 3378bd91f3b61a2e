package wire

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	// NoteFolder is the folder beside the daemon's socket in which pacemaker-cni writes, for its next process of a pod,
	// since when the pod waits and its last forecast.
	NoteFolder = "room"
	// GoneFile is a file in NoteFolder. A process that left the waiting room without a daemon makes it, and the daemon
	// removes it before it answers, and whenever a process comes from the room. It is as old as the daemon is away.
	GoneFile = ".gone"
	// MaxLine is the longest line that either end may send, in bytes, including the newline.
	MaxLine = 1024

	maxID     = 128 // pod UID, container ID
	maxName   = 320 // a namespace has at most 63 bytes, a pod's name 253
	maxReason = 512

	version = "1"
)

// ErrMalformed is wrapped by every error about a line or an argument that does not follow the protocol.
var ErrMalformed = errors.New("malformed")

// malformed is an ErrMalformed with details. fmt would cost the hook memory.
type malformed string

func (m malformed) Error() string        { return ErrMalformed.Error() + ": " + string(m) }
func (m malformed) Is(target error) bool { return target == ErrMalformed }

// Hello is the first line of a hook.
type Hello struct {
	// PodUID and ContainerID identify the start; never empty.
	PodUID, ContainerID string
	// Name is the pod's namespace/name, for people; may be empty.
	Name string
	// Since is when the pod joined the queue; zero when not known. A daemon that was restarted
	// while the process waited restores the order of the queue from it. It has microseconds,
	// because several pods may join within a millisecond.
	Since time.Time
	// Deadline is when the hook stops waiting by itself and lets the process
	// start; zero when not known.
	Deadline time.Time
	// Room reports whether the process waits in the waiting room. Only the network of
	// the pod exists then, and ContainerID is the ID that the sandbox will have.
	Room bool
	// Brief reports whether the process leaves the waiting room with the daemon's first answer, whatever that is.
	Brief bool
}

// IsStatic reports whether a UID belongs to a static pod, which never waits. kubelet makes it, as 32 hex digits. The
// UIDs of the API server have dashes.
func IsStatic(uid string) bool {
	return len(uid) == 32 && strings.Trim(uid, "0123456789abcdef") == ""
}

// AppendHello appends h to b as a line. It leaves out a name that does not fit a line. Other
// values that do not fit, such as an empty PodUID, make a line that ParseHello refuses.
func AppendHello(b []byte, h Hello) []byte {
	b = append(b, "wait "+version+" pod="+h.PodUID+" container="+h.ContainerID...)
	if _, err := parseText("name", h.Name, maxName); err == nil {
		b = append(b, " name="+h.Name...)
	}
	b = append(b, " since="...)
	b = appendTime(b, h.Since)
	b = append(b, " deadline="...)
	b = appendTime(b, h.Deadline)
	if h.Room {
		b = append(b, " room=1"...)
	}
	if h.Brief {
		b = append(b, " brief=1"...)
	}
	return append(b, '\n')
}

// ParseHello parses a hello line without its newline. It ignores keys that it does not
// know, so that later hooks can send more. The error wraps [ErrMalformed].
func ParseHello(line string) (Hello, error) {
	if len(line) >= MaxLine {
		return Hello{}, malformed("line too long")
	}
	words := strings.Split(line, " ")
	if words[0] != "wait" || len(words) < 2 || words[1] != version {
		return Hello{}, malformed("not a hello of version " + version)
	}
	var h Hello
	seen := make(map[string]bool, len(words))
	for _, word := range words[2:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok || seen[key] {
			return Hello{}, malformed("hello field " + strconv.Quote(clip(word, 40)))
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
		h.Since, err = parseTime(key, value)
	case "deadline":
		h.Deadline, err = parseTime(key, value)
	case "room":
		h.Room = value == "1"
	case "brief":
		h.Brief = value == "1"
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

// lastMicro is the last microsecond of the year 9999.
const lastMicro = 253402300799999999

// parseTime parses a time on a line: microseconds since the Unix epoch, 0 for the zero time.
func parseTime(key, value string) (time.Time, error) {
	n, ok := parseNumber(value, lastMicro)
	switch {
	case !ok:
		return time.Time{}, malformed(key + " " + strconv.Quote(clip(value, 40)) + " must be a time in Unix microseconds")
	case n == 0:
		return time.Time{}, nil
	}
	return time.UnixMicro(n), nil
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, '0')
	}
	return strconv.AppendInt(b, min(max(t.UnixMicro(), 1), lastMicro), 10)
}

// parseNumber parses a decimal number without a sign, of at most the given value.
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
