package wire

import (
	"strconv"
	"time"
)

// Args are the arguments of the hook. Times are on the wall clock; the zero
// time means "not given".
type Args struct {
	// Socket is the path of the daemon's socket on the host; required.
	Socket string
	// Hello is what the hook sends. Its Room is not an argument. If Deadline is not
	// given, it is 100 s after the hook began; it is never later than an hour after that.
	Hello
	// LeaveAt is when the hook lets the process start if it cannot reach a daemon,
	// until a daemon sends another time. It is never later than Deadline. Not
	// given: at once.
	LeaveAt time.Time
	// Cgroup is the folder of the container's cgroup below the root of the cgroup file
	// system; it begins with a slash. The hook removes it if the runtime dies. Empty: not
	// known.
	Cgroup string
}

// Argv returns a as command line arguments, without the program's name. It leaves
// out what is not given, and a name that does not fit a line.
func (a Args) Argv() []string {
	if _, err := parseText("", a.Name, maxName); err != nil {
		a.Name = ""
	}
	var argv []string
	for _, arg := range []struct{ flag, value string }{
		{"--socket", a.Socket},
		{"--pod", a.PodUID},
		{"--container", a.ContainerID},
		{"--name", a.Name},
		{"--since", micros.argument(a.Since)},
		{"--deadline", millis.argument(a.Deadline)},
		{"--leave-at", millis.argument(a.LeaveAt)},
		{"--cgroup", a.Cgroup},
	} {
		if arg.value != "" {
			argv = append(argv, arg.flag, arg.value)
		}
	}
	return argv
}

// argument returns a time as an argument, or "" for the zero time.
func (u unit) argument(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return string(u.append(nil, t))
}

// ParseArgs parses the result of [Args.Argv]. The error wraps [ErrMalformed] and names
// the argument.
func ParseArgs(argv []string) (Args, error) {
	var a Args
	for len(argv) > 0 {
		flag, value := argv[0], ""
		if argv = argv[1:]; len(argv) > 0 {
			value, argv = argv[0], argv[1:]
		}
		if err := a.set(flag, value); err != nil {
			return Args{}, err
		}
	}
	switch {
	case a.Socket == "":
		return Args{}, malformed("--socket is missing")
	case a.PodUID == "":
		return Args{}, malformed("--pod is missing")
	case a.ContainerID == "":
		return Args{}, malformed("--container is missing")
	}
	return a, nil
}

func (a *Args) set(flag, value string) (err error) {
	switch flag {
	case "--socket":
		a.Socket, err = value, checkLength(flag, value, maxSocket) // any characters: it is never sent on a line
	case "--pod", "--container", "--name", "--since", "--deadline":
		err = a.Hello.set(flag[2:], value)
	case "--leave-at":
		a.LeaveAt, err = millis.parse(flag, value)
	case "--cgroup":
		a.Cgroup, err = value, checkLength(flag, value, maxPath)
	default:
		return malformed("argument " + strconv.Quote(clip(flag, 40)))
	}
	return err
}
