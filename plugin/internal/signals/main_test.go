package signals

import (
	"io"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// spinVariable turns the test binary into a process that wants a CPU.
const spinVariable = "SENSOR_TEST_SPIN"

func TestMain(m *testing.M) {
	if os.Getenv(spinVariable) != "" {
		spin()
	}
	goleak.VerifyTestMain(m)
}

// spun is the counter of spin. A loop without an effect would be removed.
var spun atomic.Uint64

// spin uses one CPU from the first byte of the standard input to its end.
func spin() {
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for n := uint64(0); ; n++ {
		spun.Store(n)
	}
}
