package main

import (
	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const aliveLong = `Alive asks the daemon of this node whether it works on, and exits with 0 if it
does. It prints nothing then. It is for probes: only root reaches the socket on
which it asks, so no other user can keep the daemon from answering.`

func (p *program) aliveCommand() *cobra.Command {
	var runDir string
	cmd := &cobra.Command{
		Use:   "alive",
		Short: "Exit with 0 if the daemon of this node works on",
		Long:  aliveLong,
		Args:  takes(),
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
