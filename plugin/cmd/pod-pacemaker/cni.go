package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
)

const (
	defaultCNIConfDir = "/etc/cni/net.d"
	defaultCNIBinDir  = "/opt/cni/bin"
)

const cniLong = `Cni installs the waiting room once, or removes it. In the waiting room pods wait
before their sandbox exists, so that a pod which waits shows ContainerCreating.

Install copies pacemaker-cni to the folder of the CNI plugins, and writes
` + cni.FileName + ` beside the cluster's CNI configuration: a copy of it
with pacemaker-cni at the end. It touches no other file. A daemon that runs with
--cni does the same by itself, and follows changes of the cluster's configuration.

Remove takes both away again.`

func (p *program) cniCommand() *cobra.Command {
	var f struct {
		confDir, binDir, runDir, from string
		timeout                       time.Duration
	}
	cmd := &cobra.Command{
		Use:       "cni install|remove",
		Short:     "Install or remove the waiting room",
		Long:      cniLong,
		Example:   "  pod-pacemaker cni install\n  pod-pacemaker cni remove",
		ValidArgs: []string{"install", "remove"},
		Args:      takes("install or remove"),
		RunE: does(func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "remove":
				if err := cni.Remove(f.confDir, f.binDir); err != nil {
					return fmt.Errorf("remove the waiting room: %w", err)
				}
				_, err := fmt.Fprintln(p.stdout, "removed")
				return err
			case "install":
			default:
				return &wrongUsage{fmt.Sprintf("%q is neither install nor remove", args[0])}
			}
			from, err := programBeside(cni.ProgramName, f.from)
			if err != nil {
				return err
			}
			log := logrus.New()
			log.SetOutput(p.stderr)
			i := cni.New(cni.Options{
				ConfDir: f.confDir, BinDir: f.binDir, Program: from, Timeout: f.timeout, Log: log,
				Socket: plugin.Options{RunDir: f.runDir}.SocketPath(), ExemptNamespaces: plugin.RoomExempt(),
			}, func(string) {})
			i.Step(time.Now())
			s := i.State()
			if !s.Installed {
				return fmt.Errorf("the waiting room is not installed: %s", s.WhyNot)
			}
			_, err = fmt.Fprintf(p.stdout, "installed %s, a copy of %s\n", filepath.Join(f.confDir, cni.FileName), s.Source)
			return err
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.confDir, "cni-conf-dir", defaultCNIConfDir, "`folder` of the CNI configurations")
	fs.StringVar(&f.binDir, "cni-bin-dir", defaultCNIBinDir, "`folder` of the CNI plugins")
	fs.StringVar(&f.runDir, "run-dir", defaultRunDir, "`folder` of the daemon's sockets")
	fs.DurationVar(&f.timeout, "timeout", 200*time.Second, "how long a pod may wait there; must be below twice kubelet's runtimeRequestTimeout")
	fs.StringVar(&f.from, "from", "", "`file` to copy (default: "+cni.ProgramName+" beside this program)")
	return cmd
}
