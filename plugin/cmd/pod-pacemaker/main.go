// Pod-pacemaker lets the pods of a node start only as fast as the node can handle.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version and commit (the commit of the sources) are set by the build.
var version, commit = "dev", "unknown"

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM, or with stop. The second signal ends the
// process at once, as the first one does in commands without this context. A command that runs until a signal also goes on
// if the reader of its log ends.
func untilSignal(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop = signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
