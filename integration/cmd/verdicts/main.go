// Command verdicts runs scenarios in shards, and writes each one's verdict as soon as it ended. A run that was cut off
// goes on where it ended: what passed at this commit already is not run again.
//
//	verdicts -shard 2/4 -out FILE [-package ./e2e] [-tags e2e,full] [-known FILE] [-run REGEXP] [-timeout 3h]
//	verdicts -events FILE -out FILE [-package ./e2e]   # of a run that go test -json has written to a file
//	verdicts merge KNOWN FILE...   # into KNOWN, the latest of each scenario
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/verdicts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verdicts:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	if len(args) > 1 && args[0] == "merge" {
		return merge(args[1], args[2:])
	}
	r := run{show: os.Stdout}
	flags := flag.NewFlagSet("verdicts", flag.ExitOnError)
	shard := flags.String("shard", "1/1", "which part of the scenarios, of how many")
	flags.StringVar(&r.out, "out", "", "the `file` to which verdicts are added")
	flags.StringVar(&r.pkg, "package", "./e2e", "the package of the scenarios")
	flags.StringVar(&r.tags, "tags", "e2e,full", "their build tags")
	flags.StringVar(&r.known, "known", "", "the `file` that says how long scenarios take")
	flags.StringVar(&r.match, "run", "", "only scenarios that match this `regexp`")
	flags.DurationVar(&r.timeout, "timeout", 3*time.Hour, "for all of them")
	events := flags.String("events", "", "the `file` with the output of go test -json: nothing is run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if n, _ := fmt.Sscanf(*shard, "%d/%d", &r.part, &r.parts); n != 2 || r.part < 1 || r.part > r.parts {
		return fmt.Errorf("-shard %s: want a part and how many there are, such as 2/4", *shard)
	}
	if r.out == "" {
		return fmt.Errorf("-out: want a file for the verdicts")
	}
	if *events != "" {
		return r.read(ctx, *events)
	}
	return r.all(ctx)
}

// merge makes known the latest verdicts of all these files and its own.
func merge(known string, files []string) error {
	var all []verdicts.Verdict
	for _, file := range append([]string{known}, files...) {
		some, err := verdicts.Read(file)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	return verdicts.Write(known, verdicts.Latest(all))
}
