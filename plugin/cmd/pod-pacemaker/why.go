package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const whyLong = `Why says in one line why a pod of this node waits, or when and why it started.

  default/web-3: waiting 12s, place 4 of 9: Concurrency: 2 of 2 starting; expected in about 20s (observed)

The word before the measure is the reason, the same as in events, logs and
metrics; 'pod-pacemaker status --help' explains them. "observed" means that the
expectation comes from starts on this node; until the first one has ended it is a
guess.

No pod waits for ever: one that has waited for maxWait is admitted over the limit,
unless a StartPolicy limits how many pods run.

The daemon remembers the last 256 starts that ended. For a pod that it does not
know the exit code is 1.`

func (p *program) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "why NAMESPACE/POD",
		Short:   "Say in one line why a pod waits or started",
		Long:    whyLong,
		Example: "  pod-pacemaker why default/web-0\n  pod-pacemaker why default/web-0 -o json",
		Args: cobra.MatchAll(takes("NAMESPACE/POD"), func(_ *cobra.Command, args []string) error {
			if namespace, name, _ := strings.Cut(args[0], "/"); namespace == "" || name == "" || strings.Contains(name, "/") {
				return &wrongUsage{fmt.Sprintf("%q: must be NAMESPACE/POD, like default/web-0", args[0])}
			}
			return nil
		}),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return podNames(cmd.Context(), cmd.Flag("run-dir").Value.String()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	p.asks(cmd, func(ctx context.Context, daemon *admin.Client, args []string) (answer any, text string, err error) {
		namespace, name, _ := strings.Cut(args[0], "/")
		w, err := daemon.Why(ctx, namespace, name)
		return w, whyLine(w) + "\n", err
	})
	return cmd
}

// podNames returns the pods that a daemon can be asked about; none where it does
// not answer.
func podNames(ctx context.Context, runDir string) (names []string) {
	s, err := admin.NewClient(adminSocket(runDir)).Status(ctx)
	if err != nil {
		return nil
	}
	for _, pod := range slices.Concat(s.Waiting, s.Starting, s.Ended) {
		names = append(names, podName(pod))
	}
	return names
}

func podName(p admin.Pod) string { return clean(p.Namespace + "/" + p.Name) }
