package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const long = `Kubectl pacemaker shows what the daemons of all nodes do, and why a pod waits. It runs
your own kubectl, with its kubeconfig and your permissions:

  status, top            list pacemakernodes
  status NODE, costs,    list pods and create pods/exec in the daemon's namespace;
  why POD                why also gets the pod
  page NODE              list pods; create pods/portforward in the daemon's namespace

A user who may exec into the daemon's pods is as good as root on the nodes. Without
that permission, 'why' uses the pod's status and events.`

const example = `  kubectl pacemaker status              Show all nodes, one line each.
  kubectl pacemaker status worker-3     Show all that the daemon of one node knows.
  kubectl pacemaker top                 Show the nodes with the longest waits.
  kubectl pacemaker why web-0 -n shop   Explain what a pod waits for, or why it does not wait.
  kubectl pacemaker costs worker-3      Show what starts took on one node.
  kubectl pacemaker page worker-3       Serve a node's page, with a row for each of its pods.`

// run executes the command and returns the exit code: 0 success, 1 failure, 2 wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &asker{kubectl: realKubectl, forward: realForward, stdout: stdout}
	root := a.command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	accepted := false
	root.PersistentPreRun = func(*cobra.Command, []string) { accepted = true } // the command line is right
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "kubectl pacemaker: %v\n", err)
	if accepted {
		return 1
	}
	fmt.Fprintln(stderr, "'kubectl pacemaker --help' shows how to use it.")
	return 2
}

// asker is one call of the program.
type asker struct {
	// kubectl runs kubectl and returns its standard output. The error has its standard error.
	kubectl func(ctx context.Context, args ...string) (stdout string, err error)
	// forward has kubectl open a port of this machine; see realForward.
	forward func(ctx context.Context, opened func(address string), args ...string) error
	stdout  io.Writer

	passedOn  map[string]*string // flags of kubectl, by name
	namespace string             // of the pod
	daemons   string             // namespace of the daemons
	json      bool
}

// kubectlFlags are the flags that are passed on to kubectl, in this order.
var kubectlFlags = []string{"kubeconfig", "context", "cluster", "user", "as"}

func (a *asker) command() *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl pacemaker", Short: "Show what the daemons of all nodes do, and why a pod waits",
		Long: long, Example: example, Version: version, SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pacemaker"},
	}
	versionText := "kubectl-pacemaker " + version + "\n"
	root.SetVersionTemplate(versionText)
	root.Flags().Bool("version", false, "print the version")
	fs := root.PersistentFlags()
	a.passedOn = map[string]*string{}
	for _, name := range kubectlFlags {
		a.passedOn[name] = fs.String(name, "", "passed on to kubectl")
	}
	fs.StringVarP(&a.namespace, "namespace", "n", "", "the pod's namespace, passed on to kubectl")
	fs.StringVar(&a.daemons, "daemon-namespace", "pod-pacemaker", "`namespace` of the daemons")

	status := &cobra.Command{
		Use: "status [NODE]", Short: "Show all nodes in one line each, or one node in full", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.ofNode(cmd.Context(), args[0], "status")
			}
			return a.status(cmd.Context())
		},
	}
	top := &cobra.Command{
		Use: "top", Short: "Show the nodes with the longest waits", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.top(cmd.Context()) },
	}
	why := &cobra.Command{
		Use: "why POD", Short: "Explain what a pod waits for, or why it does not wait", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if namespace, name, found := strings.Cut(args[0], "/"); found {
				a.namespace = namespace
				return a.why(cmd.Context(), name)
			}
			return a.why(cmd.Context(), args[0])
		},
	}
	costs := &cobra.Command{
		Use: "costs NODE", Short: "Show what starts took on a node", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.ofNode(cmd.Context(), args[0], "costs") },
	}
	for _, cmd := range []*cobra.Command{status, top, costs} {
		cmd.Flags().FuncP("output", "o", "output format, `text|json` (default text)", func(format string) error {
			a.json = format == "json"
			if !a.json && format != "text" {
				return errors.New("must be text or json")
			}
			return nil
		})
	}
	page := &cobra.Command{
		Use: "page NODE", Short: "Serve a node's page on this machine, with a row for each of its pods", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.page(cmd.Context(), args[0]) },
	}
	root.AddCommand(status, top, why, costs, page, &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, versionText)
			return err
		},
	})
	return root
}
