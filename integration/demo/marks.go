package demo

import (
	"strconv"
	"strings"
	"time"
)

// marks reads from a pod's output when its process started and when it was ready, by its own clock.
// A time is zero if the output lacks it. Lines may have the prefix of CRI's log format.
func marks(output string) (started, ready time.Time) {
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		nanos, err := strconv.ParseInt(words[len(words)-1], 10, 64)
		if err != nil {
			continue
		}
		switch words[len(words)-2] {
		case "started":
			started = time.Unix(0, nanos)
		case "ready":
			ready = time.Unix(0, nanos)
		}
	}
	return started, ready
}
