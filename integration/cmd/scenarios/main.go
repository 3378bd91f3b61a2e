// Command scenarios writes the list of the scenarios in e2e from their files: which of them `make
// e2e` runs, and which only `make e2e-full`. With -check it writes nothing, and fails if the list
// is not current.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail if the list is not current")
	folder := flag.String("folder", "e2e", "where the scenarios are")
	flag.Parse()
	if err := run(*folder, *check); err != nil {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
		os.Exit(1)
	}
}
