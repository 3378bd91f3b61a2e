package wire

import (
	"strconv"
	"strings"
	"time"
)

// MaxSocketPath is the longest path that fits a unix socket's address, in bytes.
const MaxSocketPath = 107

// Args are the arguments of the hook. Times are on the wall clock; the zero
// time means "not given".
type Args struct {
	// Socket is the path of the daemon's socket, as the runtime sees it.
	Socket string
	// PodUID and ContainerID name the start; required.
	PodUID, ContainerID string
	// Name is the pod's namespace/name, for people.
	Name string
	// Since is when the pod joined the queue, to the microsecond: a daemon that was
	// restarted while the hook waited keeps the order by it.
	Since time.Time
	// Deadline is when the hook stops waiting whatever happens, and lets the
	// process start. Not given: 100 s after the hook began.
	Deadline time.Time
	// LeaveAt is when the hook lets the process start while no daemon can be
	// reached, until a daemon tells another time; never later than Deadline. Not
	// given: at once.
	LeaveAt time.Time
	// Made is when the deadline was set. The hook waits no longer than Deadline
	// minus Made, also when the wall clock is set back before it begins. Not
	// given: no longer than an hour.
	Made time.Time
}

// Argv returns a as command line arguments, without the program's name. What
// was not given is left out, and so is a name that no line can carry.
func (a Args) Argv() []string {
	if _, err := parseText("", a.Name, maxName); err != nil {
		a.Name = ""
	}
	var argv []string
	for _, f := range a.fields() {
		switch {
		case f.text != nil && *f.text != "":
			argv = append(argv, f.flag, *f.text)
		case f.time != nil && !f.time.IsZero():
			argv = append(argv, f.flag, string(f.unit.append(nil, *f.time)))
		}
	}
	return argv
}

// ParseArgs reads what [Args.Argv] returns; --flag=value is understood as well.
// The error wraps [ErrMalformed] and names the argument.
func ParseArgs(argv []string) (Args, error) {
	var a Args
	fields := a.fields()
	for len(argv) > 0 {
		flag, value, joined := strings.Cut(argv[0], "=")
		argv = argv[1:]
		f := find(fields, flag)
		if f == nil {
			return Args{}, malformed("argument " + strconv.Quote(clip(flag, 40)))
		}
		if !joined {
			if len(argv) == 0 {
				return Args{}, malformed(flag + " needs a value")
			}
			value, argv = argv[0], argv[1:]
		}
		if err := f.set(value); err != nil {
			return Args{}, err
		}
	}
	for _, f := range fields {
		if f.required && *f.text == "" {
			return Args{}, malformed(f.flag + " is missing")
		}
	}
	return a, nil
}

// field ties one flag to the place of its value: text is set, or time and
// its unit.
type field struct {
	flag     string
	text     *string
	path     bool
	most     int
	required bool
	time     *time.Time
	unit     unit
}

func (a *Args) fields() []field {
	return []field{
		{flag: "--socket", text: &a.Socket, path: true, required: true},
		{flag: "--pod", text: &a.PodUID, most: maxID, required: true},
		{flag: "--container", text: &a.ContainerID, most: maxID, required: true},
		{flag: "--name", text: &a.Name, most: maxName},
		{flag: "--since", time: &a.Since, unit: micros},
		{flag: "--deadline", time: &a.Deadline, unit: millis},
		{flag: "--leave-at", time: &a.LeaveAt, unit: millis},
		{flag: "--made", time: &a.Made, unit: millis},
	}
}

func find(fields []field, flag string) *field {
	for i := range fields {
		if fields[i].flag == flag {
			return &fields[i]
		}
	}
	return nil
}

func (f *field) set(value string) (err error) {
	switch {
	case f.time != nil:
		*f.time, err = f.unit.parse(f.flag, value)
	case f.path:
		*f.text, err = parsePath(f.flag, value)
	default:
		*f.text, err = parseText(f.flag, value, f.most)
	}
	return err
}

// parsePath takes any path: it is never sent on a line.
func parsePath(key, value string) (string, error) {
	if value == "" || len(value) > MaxSocketPath {
		return "", malformed(key + " has " + strconv.Itoa(len(value)) + " bytes, must have 1 to " + strconv.Itoa(MaxSocketPath))
	}
	return value, nil
}
