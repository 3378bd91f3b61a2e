package main

import (
	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

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
