package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const long = `Kubectl pacemaker says of all nodes what their daemons do, and of any pod what it
waits for. It asks by your own kubectl, with its kubeconfig, and with your rights:

  status, top          list pacemakernodes
  why POD, top --pods, get the pod; list pods and create pods/exec in the daemon's
  status NODE, costs   namespace
  page NODE            list pods; create pods/portforward in the daemon's namespace

A user who may execute in the daemon's pods is as good as root on the nodes. Without
that right, 'why' says what the pod's status and events tell.`

const example = `  kubectl pacemaker status              all nodes, in one line each
  kubectl pacemaker status worker-3     all that the daemon of one node knows
  kubectl pacemaker top                 the nodes where pods have waited longest, first
  kubectl pacemaker top --pods          the pods that have waited longest, of all nodes
  kubectl pacemaker why web-0 -n shop   what one pod waits for, or why it does not wait
  kubectl pacemaker costs worker-3      what starts took on one node
  kubectl pacemaker page worker-3       the node's page, with a row for each of its pods`

// run does what the arguments ask for, and gives the exit code: 0 done, 1 it could not
// be done, 2 wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &asker{kubectl: realKubectl, forward: realForward, stdout: stdout}
	root := a.command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	understood := false
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true } // runs where the command line is right
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "kubectl pacemaker: %v\n", err)
	if understood {
		return 1
	}
	fmt.Fprintln(stderr, "'kubectl pacemaker --help' shows how to use it.")
	return 2
}

// asker is one call of the program.
type asker struct {
	// kubectl runs kubectl with arguments and gives what it wrote; the error is what it said.
	kubectl func(ctx context.Context, args ...string) (stdout string, err error)
	// forward has kubectl open a port of this machine.
	forward func(ctx context.Context, args ...string) (address string, ended <-chan error, err error)
	stdout  io.Writer

	handedOn  map[string]*string // flags of kubectl, by name
	namespace string
	// daemons is the namespace of the daemons.
	daemons string
	json    bool
}

// handedOn are the flags of kubectl that are handed on, in their order.
var handedOn = []string{"kubeconfig", "context", "cluster", "user", "as"}

func (a *asker) command() *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl pacemaker", Short: "What the daemons of all nodes do, and what a pod waits for",
		Long: long, Example: example, SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pacemaker"},
	}
	fs := root.PersistentFlags()
	a.handedOn = map[string]*string{}
	for _, name := range handedOn {
		a.handedOn[name] = fs.String(name, "", "as for kubectl")
	}
	fs.StringVarP(&a.namespace, "namespace", "n", "", "the pod's namespace, as for kubectl")
	fs.StringVar(&a.daemons, "daemon-namespace", "pod-pacemaker", "the `namespace` of the daemons")

	var pods bool
	status := &cobra.Command{
		Use: "status [NODE]", Short: "What all nodes do, or all of one node", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.asks(cmd.Context(), args[0], "status")
			}
			return a.status(cmd.Context())
		},
	}
	top := &cobra.Command{
		Use: "top", Short: "Where pods have waited longest", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pods {
				return a.topPods(cmd.Context())
			}
			return a.topNodes(cmd.Context())
		},
	}
	top.Flags().BoolVar(&pods, "pods", false, "the pods themselves, from the daemons of the 20 nodes with the longest waits")
	why := &cobra.Command{
		Use: "why POD", Short: "What a pod waits for, or why it does not wait", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if namespace, name, found := strings.Cut(args[0], "/"); found {
				a.namespace = namespace
				return a.why(cmd.Context(), name)
			}
			return a.why(cmd.Context(), args[0])
		},
	}
	costs := &cobra.Command{
		Use: "costs NODE", Short: "What starts took on a node", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.asks(cmd.Context(), args[0], "costs") },
	}
	for _, cmd := range []*cobra.Command{status, top, costs} {
		cmd.Flags().FuncP("output", "o", "how to write the answer, `text|json` (default text)", a.setOutput)
	}
	var address string
	page := &cobra.Command{
		Use: "page NODE", Short: "Serve a node's page here, with a row for each of its pods", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.page(cmd.Context(), args[0], address) },
	}
	page.Flags().StringVar(&address, "address", "127.0.0.1:0", "the loopback `address` of this machine where the page is; port 0: a free one")
	root.AddCommand(status, top, why, costs, page, &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, "kubectl-pacemaker", version)
			return err
		},
	})
	return root
}

// setOutput takes the value of --output.
func (a *asker) setOutput(format string) error {
	if format != "text" && format != "json" {
		return errors.New("must be text or json")
	}
	a.json = format == "json"
	return nil
}
