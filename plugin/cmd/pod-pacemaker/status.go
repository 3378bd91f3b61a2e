package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const statusLong = `Status shows what the daemon of this node does: which pods hold a slot and for
how long, which wait, at which place and what for, the limits and where they come
from, and whether the runtime, the gate and the API server are in order.

Reasons to wait:
  Concurrency     as many starts as allowed are under way
  Rate            the next start is due later
  CPULoad, IOLoad, LoadAverage, Pressure
                  a signal of the node is at its limit
  Pulling         enough pods pull images
  Queued          others go first
  GateRoom        enough pods wait near their turn
  NotPresent      nothing holds it, but kubelet has not come back to it yet
  PolicyStarting, PolicyRunning, PolicyPacer, PolicyClaim
                  a StartPolicy holds it
  Unadmittable    it alone exceeds the limit of a StartPolicy
  NodeShutdown    the node is shutting down

In the column AT, "gate" is a pod whose process starts the moment it is admitted,
"kubelet" one that was refused and that kubelet will try again.`

const statusExample = `  pod-pacemaker status
  pod-pacemaker status --watch
  pod-pacemaker status -o json | jq '.waiting | length'
  kubectl -n pod-pacemaker exec POD -- pod-pacemaker status`

// watchEvery is the time between two pictures of --watch.
const watchEvery = time.Second

func (p *program) statusCommand() *cobra.Command {
	var runDir string
	var o output
	var watch, ready bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show slots, queue, limits and connections of this node",
		Long:    statusLong,
		Example: statusExample,
		Args:    takes(),
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			socket := adminSocket(runDir)
			if watch {
				return p.watchStatus(cmd.Context(), socket, o)
			}
			s, err := admin.NewClient(socket).Status(cmd.Context())
			if err != nil {
				return explain(cmd.Context(), socket, err)
			}
			if o == outputJSON {
				err = p.writeJSON(s)
			} else {
				_, err = fmt.Fprint(p.stdout, newScreen(p.stdout).text(statusLines(s)))
			}
			if err == nil && ready && !s.Ready {
				return fmt.Errorf("pods start unpaced: %s", clean(s.NotReady))
			}
			return err
		}),
	}
	p.addRunDir(cmd, &runDir)
	addOutput(cmd, &o)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it anew every second until interrupted; with -o json, one object on each line")
	cmd.Flags().BoolVar(&ready, "ready", false, "exit with 1 while pods are not paced")
	cmd.MarkFlagsMutuallyExclusive("ready", "watch")
	return cmd
}

// watchStatus shows the status until ctx ends. A daemon that does not answer is
// shown as such, for it may come back.
func (p *program) watchStatus(ctx context.Context, socket string, o output) (err error) {
	client, sc := admin.NewClient(socket), newScreen(p.stdout)
	if sc.terminal {
		// The terminal has shown ^C behind the last picture.
		defer func() {
			_, last := fmt.Fprintln(p.stdout)
			err = errors.Join(err, last)
		}()
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		s, err := client.Status(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := p.showOnce(sc, s, explainIf(ctx, socket, err), o); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func explainIf(ctx context.Context, socket string, err error) error {
	if err == nil {
		return nil
	}
	return explain(ctx, socket, err)
}

// showOnce draws one picture.
func (p *program) showOnce(sc screen, s admin.Status, asked error, o output) error {
	var err error
	switch {
	case o == outputJSON && asked != nil:
		_, err = fmt.Fprintf(p.stderr, "pod-pacemaker: %v\n", asked)
	case o == outputJSON:
		err = json.NewEncoder(p.stdout).Encode(s)
	case asked != nil:
		_, err = fmt.Fprint(p.stdout, sc.picture([]line{{text: clean(asked.Error()), style: alarm}}))
	default:
		_, err = fmt.Fprint(p.stdout, sc.picture(statusLines(s)))
	}
	return err
}
