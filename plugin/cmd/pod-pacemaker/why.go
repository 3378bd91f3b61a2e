package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const whyLong = `Why explains in one line why a pod of this node waits, or when and why it started.

  default/web-3: waiting 12s, place 4 of 9: Concurrency: 2 of 2 starting; expected in about 20s (observed)

The word before the measure is the reason. It is the same in events, logs and
metrics; 'pod-pacemaker status --help' explains the reasons. "observed" means that
the expected time is based on starts on this node. Until the first start has ended it
is a guess.

A pod that has waited for maxWait is admitted over the limit, unless a StartPolicy
limits how many pods run.

The daemon remembers the last 256 starts that ended. For an unknown pod the exit code
is 1.`

func (p *program) whyCommand() *cobra.Command {
	var pod podArg
	cmd := &cobra.Command{
		Use:     "why NAMESPACE/POD",
		Short:   "Explain in one line why a pod waits or started",
		Long:    whyLong,
		Example: "  pod-pacemaker why default/web-0\n  pod-pacemaker why default/web-0 -o json",
		Args:    pod.args(),
	}
	p.asks(cmd, func(ctx context.Context, daemon *admin.Client) (answer any, text string, err error) {
		w, err := pod.why(ctx, daemon)
		return w, whyLine(w) + "\n", err
	})
	return cmd
}

// podArg is the argument NAMESPACE/POD of a command.
type podArg struct{ namespace, name string }

// args returns what reads the argument.
func (a *podArg) args() cobra.PositionalArgs {
	return cobra.MatchAll(needs("NAMESPACE/POD", 1), func(_ *cobra.Command, args []string) error {
		if a.namespace, a.name, _ = strings.Cut(args[0], "/"); a.namespace == "" || a.name == "" || strings.Contains(a.name, "/") {
			return fmt.Errorf("%q: must be NAMESPACE/POD, like default/web-0", args[0])
		}
		return nil
	})
}

// why asks the daemon for the pod's state.
func (a *podArg) why(ctx context.Context, daemon *admin.Client) (admin.Why, error) {
	s, err := daemon.Status(ctx)
	if err != nil {
		return admin.Why{}, err
	}
	return s.Why(a.namespace, a.name)
}

func podName(p admin.Pod) string { return p.Namespace + "/" + p.Name }
