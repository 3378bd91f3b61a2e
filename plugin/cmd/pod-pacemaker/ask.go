package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const defaultRunDir = "/run/pod-pacemaker"

// output is the format of an answer.
type output string

const (
	outputText output = "text"
	outputJSON output = "json"
)

// runDirEnv has the run folder in a pod of the DaemonSet, so that a command that is executed there
// asks the daemon of that pod.
const runDirEnv = "POD_PACEMAKER_RUN_DIR"

func (p *program) addRunDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "run-dir", cmp.Or(p.env(runDirEnv), defaultRunDir),
		"`folder` of the daemon's sockets; with --instance NAME, the folder NAME in it (env "+runDirEnv+")")
}

// question asks the daemon and returns the answer as a value for JSON and as text.
type question func(ctx context.Context, daemon *admin.Client) (answer any, text string, err error)

// asks makes the command ask the daemon of this node and write the answer.
func (p *program) asks(cmd *cobra.Command, ask question) {
	var runDir string
	var o output
	p.addRunDir(cmd, &runDir)
	addOutput(cmd, &o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		socket := adminSocket(runDir)
		answer, text, err := ask(cmd.Context(), admin.NewClient(socket))
		if err != nil {
			return explain(cmd.Context(), socket, err)
		}
		return p.write(o, answer, text)
	}
}

func addOutput(cmd *cobra.Command, o *output) {
	*o = outputText
	addChoice(cmd, o, "output", "o", "output format", outputText, outputJSON)
}

func adminSocket(runDir string) string {
	return plugin.Options{RunDir: runDir}.AdminPath()
}

// explain turns the error of a question to the daemon into one that says what to do. If ctx has
// ended, it returns the cause of that.
func explain(ctx context.Context, socket string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, admin.ErrUnknownPod), errors.Is(err, errNothingToAdmit):
		return err
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("only root may ask the daemon at %s: try sudo", socket)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no daemon runs on this node: there is no %s; start one with 'pod-pacemaker run', or name its folder with --run-dir", socket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the daemon has stopped: no answer at %s; 'journalctl -u pod-pacemaker' or its container's log says why", socket)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the daemon at %s does not answer in time; 'journalctl -u pod-pacemaker' or its container's log may say why", socket)
	default:
		return fmt.Errorf("%s: %w", socket, err)
	}
}

// write writes the answer as indented JSON, or the text.
func (p *program) write(o output, answer any, text string) error {
	if o == outputText {
		_, err := fmt.Fprint(p.stdout, text)
		return err
	}
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	return e.Encode(answer)
}

const aliveLong = `Alive exits with 0 and prints nothing if the daemon of this node makes decisions. It
is for probes. It asks at a socket that only root reaches, so no other user can keep
the daemon from answering.`

func (p *program) aliveCommand() *cobra.Command {
	var runDir string
	cmd := &cobra.Command{
		Use:   "alive",
		Short: "Exit with 0 if the daemon of this node is alive",
		Long:  aliveLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			socket := adminSocket(runDir)
			if err := admin.NewClient(socket).Alive(cmd.Context()); err != nil {
				return explain(cmd.Context(), socket, err)
			}
			return nil
		},
	}
	p.addRunDir(cmd, &runDir)
	return cmd
}
