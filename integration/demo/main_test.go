package demo

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// One processor: the timers of a synctest bubble share one context of the race detector. Two
	// timers that fire at once on two processors corrupt it, which ends the process
	// (https://go.dev/issue/78156). Here tens of timers fire at each moment.
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}
