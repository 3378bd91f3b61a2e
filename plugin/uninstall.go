package plugin

import (
	"context"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/uninstall"
)

// uninstall removes the daemon's files from the host if its DaemonSet does not run it there any more. Call it when the
// daemon has ended.
func (d *Daemon) uninstall(ctx context.Context) error {
	o := d.options
	if d.cluster == nil || o.DaemonSet == "" {
		return nil
	}
	return uninstall.Run(ctx, uninstall.Options{
		Client: d.cluster.kube, DaemonSet: o.DaemonSet, NodeName: o.NodeName, RunDir: o.RunDir, Version: o.Version,
		Files: o.files(), Room: o.wantsRoom(), CNIConfDir: o.CNIConfDir, CNIBinDir: o.CNIBinDir, Log: o.Log,
	})
}
