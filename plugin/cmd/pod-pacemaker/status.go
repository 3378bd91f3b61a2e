package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const statusLong = `Status shows which pods hold a slot and for how long, which pods wait, at which place
and for what, the limits and where they come from, and whether the runtime, the gate
and the API server are in order.

Reasons to wait:
  Concurrency     the limit of concurrent starts is reached
  Rate            the rate limit allows the next start later
  CPULoad, IOLoad, LoadAverage, Pressure
                  a signal of the node is at its limit
  Queued          other pods are ahead
  StartAfter      a pod that the config names in startAfter is not ready
  NotPresent      no limit holds it, but kubelet has not retried it yet
  Preparing       nothing holds it: kubelet pulls its images, or cannot make its
                  first container yet
  PolicyStarting, PolicyRunning, PolicyPacer, PolicyClaim
                  a StartPolicy holds it
  Unadmittable    it alone exceeds the limit of a StartPolicy

The metrics and the log have GateFull (enough pods wait near their turn), Pulling (enough
pods pull images), Order (another container of the pod starts first) and NodeShutdown as
reasons of refusals, too.

The column AT shows where a pod waits. "gate": its process starts the moment it is
admitted. "room": it waits in the waiting room, before its sandbox exists.
"kubelet": it was refused, and kubelet will retry it. The column TAKES shows the CPU
time that the start is expected to take, and how that is known.`

const statusExample = `  pod-pacemaker status
  watch -n 1 pod-pacemaker status
  pod-pacemaker status -o json | jq '.waiting | length'
  kubectl -n pod-pacemaker exec POD -- pod-pacemaker status`

func (p *program) statusCommand() *cobra.Command {
	var ready bool
	var s admin.Status
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show slots, queue, limits and connections of this node",
		Long:    statusLong,
		Example: statusExample,
		Args:    cobra.NoArgs,
		PostRunE: func(*cobra.Command, []string) error {
			if ready && !s.Ready {
				return fmt.Errorf("pods start unpaced: %s", s.NotReady)
			}
			return nil
		},
	}
	p.asks(cmd, func(ctx context.Context, daemon *admin.Client) (answer any, text string, err error) {
		s, err = daemon.Status(ctx)
		return s, statusText(s), err
	})
	cmd.Flags().BoolVar(&ready, "ready", false, "exit with 1 if pods start unpaced")
	return cmd
}
