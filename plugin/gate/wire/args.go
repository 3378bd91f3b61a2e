package wire

import "strconv"

// Argv returns the arguments of the hook, without the program's name: the path of the daemon's socket on the host, the
// hello that the hook sends, and the forecast that counts until a daemon sends another, both as lines without their newline.
// The hook waits until the deadline of the hello, which must have one, and never for longer than an hour. cgroup is the
// folder of the container's cgroup below the root of the cgroup file system, which the hook removes if the runtime dies;
// it is empty if the folder is not known.
func Argv(socket string, h Hello, forecast Answer, cgroup string) []string {
	hello, first := AppendHello(nil, h), AppendAnswer(nil, forecast)
	return []string{socket, string(hello[:len(hello)-1]), string(first[:len(first)-1]), cgroup}
}

// ParseArgv parses the result of [Argv]. It ignores further arguments. The error wraps [ErrMalformed] and says what is wrong.
func ParseArgv(argv []string) (socket string, h Hello, forecast Answer, cgroup string, err error) {
	if len(argv) < 4 { // a newer daemon may give more
		return "", Hello{}, Answer{}, "", malformed(strconv.Itoa(len(argv)) + " arguments, must be at least 4: socket, hello, forecast and cgroup")
	}
	h, err = ParseHello(argv[1])
	if err == nil {
		forecast, err = ParseAnswer(argv[2])
	}
	if err == nil && forecast.Kind != Forecast {
		err = malformed("third argument " + strconv.Quote(clip(argv[2], 40)) + " must be a forecast")
	}
	return argv[0], h, forecast, argv[3], err
}
