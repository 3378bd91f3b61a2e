package usage

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(manyThreads) != "" {
		haveManyThreads()
		return
	}
	goleak.VerifyTestMain(m)
}
