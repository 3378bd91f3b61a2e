package main

import (
	"context"
	"errors"
	"fmt"
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
	var runDir string
	var o output
	cmd := &cobra.Command{
		Use:     "why NAMESPACE/POD",
		Short:   "Say in one line why a pod waits or started",
		Long:    whyLong,
		Example: "  pod-pacemaker why default/web-0\n  pod-pacemaker why default/web-0 -o json",
		Args:    takes("NAMESPACE/POD"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return p.why(cmd.Context(), runDir, args[0], o)
		}),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return podNames(cmd.Context(), runDir), cobra.ShellCompDirectiveNoFileComp
		},
	}
	p.addRunDir(cmd, &runDir)
	addOutput(cmd, &o)
	return cmd
}

func (p *program) why(ctx context.Context, runDir, pod string, o output) error {
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return &wrongUsage{fmt.Sprintf("%q: must be NAMESPACE/POD, like default/web-0", pod)}
	}
	socket := adminSocket(runDir)
	w, err := admin.NewClient(socket).Why(ctx, namespace, name)
	switch {
	case errors.Is(err, admin.ErrUnknownPod):
		return fmt.Errorf("%s: not known on this node: it neither waits nor starts, and did neither lately", pod)
	case err != nil:
		return explain(ctx, socket, err)
	case o == outputJSON:
		return p.writeJSON(w)
	}
	_, err = fmt.Fprintln(p.stdout, whyLine(w))
	return err
}

// podNames returns the pods that a daemon can be asked about; none where it does
// not answer.
func podNames(ctx context.Context, runDir string) []string {
	s, err := admin.NewClient(adminSocket(runDir)).Status(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, pods := range [][]admin.Pod{s.Waiting, s.Starting, s.Ended} {
		for _, pod := range pods {
			names = append(names, podName(pod))
		}
	}
	return names
}

func podName(p admin.Pod) string { return clean(p.Namespace + "/" + p.Name) }
