package demo

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Containers of a processNode are this program, confined.
	if len(os.Args) > 1 && os.Args[1] == ConfineCommand {
		fmt.Fprintln(os.Stderr, Confine(os.Args[2:]))
		panic("not confined")
	}
	goleak.VerifyTestMain(m)
}
