package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
)

const long = `Kubectl pacemaker shows what the daemons of all nodes do, and why a pod waits. It runs
your own kubectl, with its kubeconfig and your permissions:

  status, top            list pacemakernodes
  status NODE            list and get pods and create pods/exec in the daemon's namespace
  why                    get the pod; list pods and get pods/proxy in the daemon's
                         namespace, where metricsProxy.why is on, or else get pods
                         and create pods/exec there
  page NODE              list pods; get pods and create pods/portforward in the daemon's
                         namespace

A user who may exec into the daemon's pods is as good as root on the nodes. Without
these permissions, 'why' uses the pod's status and events.

kubectl completes the plugin's commands and nodes if a link to the plugin with this name
is on your PATH, for example beside it:

  ln -s kubectl-pacemaker kubectl_complete-pacemaker

Exit codes:
  0   success
  1   failure; standard error has the reason
  64  wrong command line`

const example = `  kubectl pacemaker status              Show all nodes, one line each.
  kubectl pacemaker status worker-3     Show all that the daemon of one node knows.
  kubectl pacemaker top                 Show the nodes with the longest waits.
  kubectl pacemaker why shop/web-0      Explain what a pod waits for, or why it does not wait.
  kubectl pacemaker page worker-3       Serve a node's page, with a row for each of its pods.`

const statusLong = `Status shows a line for each node: the config and mode in force, whether pods are paced
(READY), how many pods wait and start, for how long the longest wait has lasted and
what holds the pods. MESSAGE says why a node is not ready, or what is amiss on one that
is: switched off, a config that is left out, pods that are refused. A node is "gone" if
its daemon has not reported for 30 minutes, and its pods are not counted. Nodes report
up to 10 s late, and later in clusters of over 1,000 nodes.

With NODE it shows all that the daemon of that node knows, with each pod that waits or
starts. 'pod-pacemaker status' prints the same on the node, and its help explains it.`

const statusExample = `  kubectl pacemaker status
  kubectl pacemaker status worker-3
  kubectl pacemaker status worker-3 -o json`

const topLong = `Top shows the nodes where pods wait, the longest wait first, with the columns of
'status'. Nodes whose daemon is gone are only counted.`

const topExample = `  kubectl pacemaker top
  kubectl pacemaker top -o json`

const whyLong = `Why explains in one line what a pod waits for, when and why it started, or what else
keeps it from starting. Without NAMESPACE, the pod's namespace comes from -n, or else
from your kubeconfig. The daemon on the pod's node answers; if it cannot, the answer
comes from the pod's status and events. With -o json, only an answer of the daemon is
printed.`

const whyExample = `  kubectl pacemaker why shop/web-0
  kubectl pacemaker why web-0 -n shop
  kubectl pacemaker why shop/web-0 -o json`

const pageLong = `Page serves the page of a node's daemon on this machine until you press Ctrl-C, with a
row for each pod that started there in the last ten minutes. It prints the address,
which is a secret, because the page names pods.`

// The exit codes. pod-pacemaker has the same.
const (
	exitOK      = 0
	exitFailure = 1
	exitInvalid = 64 // the command line is wrong
)

// run executes the command and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &asker{kubectl: realKubectl, forward: realForward, stdout: stdout}
	a.read = a.realRead
	root := a.command()
	root.SetArgs(args)
	stderr = plain.Writer{W: stderr}
	root.SetErr(stderr)
	accepted := false
	root.PersistentPreRun = func(*cobra.Command, []string) { accepted = true } // the command line is right
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "kubectl pacemaker: "+err.Error())
	if accepted {
		return exitFailure
	}
	fmt.Fprintf(stderr, "'%s --help' shows how to use it.\n", cmd.CommandPath())
	return exitInvalid
}

// asker is one call of the program.
type asker struct {
	// kubectl runs kubectl and returns its standard output. The error has its standard error.
	kubectl func(ctx context.Context, args ...string) (stdout string, err error)
	// forward has kubectl open a port of this machine; see realForward.
	forward func(ctx context.Context, opened func(address string), args ...string) error
	// read requests a path of the API server; see realRead.
	read   func(ctx context.Context, path string) (string, error)
	stdout io.Writer

	passedOn   pflag.FlagSet // the flags of kubectl: they say where the API server is, and who asks
	kubeconfig string
	overrides  clientcmd.ConfigOverrides // of the kubeconfig

	namespace string // of the pod; empty for the one that kubectl takes
	daemons   string // namespace of the daemons
	json      bool
}

// needs returns a check that there is one argument. Errors call it name.
func needs(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return errors.New(name + " is missing")
		case len(args) > 1:
			return fmt.Errorf("%q: only one %s is accepted", args[1], name)
		}
		return nil
	}
}

func (a *asker) command() *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl pacemaker", Short: "Show what the daemons of all nodes do, and why a pod waits",
		Long: long, Example: example, Version: version, SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pacemaker"},
	}
	versionText := "kubectl-pacemaker " + version + "\n"
	root.SetVersionTemplate(versionText)
	root.Flags().Bool("version", false, "print the version")
	root.CompletionOptions.DisableDefaultCmd = true // kubectl asks for completions; see arguments
	a.stdout = plain.Writer{W: a.stdout}
	root.SetOut(a.stdout)
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ContextOverrideFlags.Namespace, flags.ClusterOverrideFlags.ProxyURL = clientcmd.FlagInfo{}, clientcmd.FlagInfo{} // kubectl has no proxy-url
	clientcmd.BindOverrideFlags(&a.overrides, &a.passedOn, flags)
	a.passedOn.StringVar(&a.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	root.PersistentFlags().AddFlagSet(&a.passedOn)
	root.PersistentFlags().StringVar(&a.daemons, "daemon-namespace", "pod-pacemaker", "`namespace` of the daemons")

	status := &cobra.Command{
		Use: "status [NODE]", Short: "Show all nodes in one line each, or one node in full", Long: statusLong, Example: statusExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return needs("NODE")(cmd, args)
		},
		ValidArgsFunction: a.completeNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.ofNode(cmd.Context(), args[0])
			}
			return a.status(cmd.Context())
		},
	}
	top := &cobra.Command{
		Use: "top", Short: "Show the nodes with the longest waits", Long: topLong, Example: topExample, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.top(cmd.Context()) },
	}
	var pod string
	why := &cobra.Command{
		Use: "why [NAMESPACE/]POD", Short: "Explain what a pod waits for, or why it does not wait", Long: whyLong, Example: whyExample,
		Args: cobra.MatchAll(needs("POD"), func(_ *cobra.Command, args []string) (err error) {
			a.namespace, pod, err = podOf(args[0], a.namespace)
			return err
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.why(cmd.Context(), pod) },
	}
	why.Flags().StringVarP(&a.namespace, "namespace", "n", "", "the pod's `namespace`")
	for _, cmd := range []*cobra.Command{status, top, why} {
		cmd.Flags().FuncP("output", "o", "output format, `text|json` (default text)", func(format string) error {
			a.json = format == "json"
			if !a.json && format != "text" {
				return errors.New("must be text or json")
			}
			return nil
		})
	}
	page := &cobra.Command{
		Use: "page NODE", Short: "Serve a node's page on this machine, with a row for each of its pods", Args: needs("NODE"),
		Long: pageLong, Example: "  kubectl pacemaker page worker-3",
		ValidArgsFunction: a.completeNode,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.page(cmd.Context(), args[0]) },
	}
	root.AddCommand(status, top, why, page, &cobra.Command{
		Use: "version", Short: "Print the version", Long: "Version prints the version of the plugin.", Example: "  kubectl pacemaker version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, versionText)
			return err
		},
	})
	return root
}

// podOf splits [NAMESPACE/]POD. namespace is the one on the command line, or empty if that has none.
func podOf(arg, namespace string) (in, name string, err error) {
	in, name, found := strings.Cut(arg, "/")
	if !found {
		in, name = namespace, arg
	}
	switch {
	case name == "" || found && in == "" || strings.Contains(name, "/"):
		return "", "", fmt.Errorf("%q: must be POD or NAMESPACE/POD, like shop/web-0", arg)
	case namespace != "" && in != namespace:
		return "", "", fmt.Errorf("%q contradicts --namespace %s", arg, namespace)
	}
	return in, name, nil
}

// completeNode completes NODE with the nodes that report.
func (a *asker) completeNode(cmd *cobra.Command, args []string, begun string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	nodes, err := a.nodes(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, n := range nodes {
		if name := oneLine(n.Status.NodeName); strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
