package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// conf is the configuration of the plugin. Package plugin/internal/cni writes it, and the runtime
// adds the result of the plugins before this one.
type conf struct {
	cniVersion string
	socket     string // the daemon's; empty if the pod does not wait
	confDir    string // the folder of the CNI configurations
	timeout    time.Duration
	settle     time.Duration // for how long after a change of the folder no pod begins to wait
	prevResult string        // the result of the plugins before this one, unchanged
}

var errNoJSON = errors.New("it is no JSON object")

// readConf reads the configuration from stdin, to its end.
func readConf() (conf, error) {
	read, err := io.ReadAll(os.Stdin)
	if err != nil {
		return conf{}, err
	}
	return parseConf(string(read))
}

func parseConf(read string) (c conf, err error) {
	get := func(name string) string {
		value, ok := field(read, name)
		if !ok {
			err = errNoJSON
		}
		return value
	}
	millis := func(name string) time.Duration {
		n, bad := strconv.ParseInt(get(name), 10, 32)
		if bad != nil || n < 0 {
			return 0
		}
		return time.Duration(n) * time.Millisecond
	}
	c = conf{
		cniVersion: text(get("cniVersion")), socket: text(get("socket")), confDir: text(get("confDir")),
		prevResult: get("prevResult"), timeout: cmp.Or(millis("timeoutMillis"), defaultTimeout), settle: millis("settleMillis"),
	}
	return c, err
}

// Error codes of the CNI specification that this plugin uses.
const (
	codeVariables = 4
	codeDecode    = 6
	codeConf      = 7
	codeTryAgain  = 11
)

// fail writes to the runtime why the sandbox is not made, and returns the exit code.
func fail(c conf, code int, msg string) int {
	write(os.Stdout, `{"cniVersion":`+quoted(c.version())+`,"code":`+strconv.Itoa(code)+`,"msg":`+quoted(msg)+"}\n")
	return 1
}

// latest is the latest version of the specification that the plugin supports. It supports all
// versions whose results it can pass on without parsing them.
const latest = "1.1.0"

var supported = []string{"0.3.1", "0.4.0", "1.0.0", latest}

func (c conf) version() string { return cmp.Or(c.cniVersion, latest) }

// writeVersions answers the command VERSION.
func writeVersions() int {
	c, err := readConf()
	if err != nil {
		return fail(c, codeDecode, "cannot read the configuration: "+err.Error())
	}
	write(os.Stdout, `{"cniVersion":`+quoted(c.version())+`,"supportedVersions":["`+strings.Join(supported, `","`)+"\"]}\n")
	return 0
}
