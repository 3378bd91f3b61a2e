// Command licenses copies the licences and notices of every module that is linked into the programs
// of this repository, for the image and the archives of a release. Run it in the folder of the
// module integration. It uses only the standard library, so that an image build does not download
// that module's dependencies.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}
