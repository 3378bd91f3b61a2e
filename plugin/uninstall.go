package plugin

import (
	"context"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/uninstall"
)

// seeDaemonSet learns whether the DaemonSet of the options is there, as soon as the API server answers.
func (d *Daemon) seeDaemonSet(ctx context.Context) error {
	select {
	case <-d.answered():
		d.seen.Store(uninstall.See(ctx, d.cluster.kube, d.options.DaemonSet, d.options.Log))
	case <-ctx.Done():
	}
	return nil
}

// uninstall removes the daemon's files from the host if its DaemonSet does not run it there any more. Call it when the
// daemon has ended.
func (d *Daemon) uninstall(ctx context.Context) error {
	o := d.options
	if d.cluster == nil || o.DaemonSet == "" {
		return nil
	}
	return uninstall.Run(ctx, uninstall.Options{
		Client: d.cluster.kube, DaemonSet: o.DaemonSet, NodeName: o.NodeName, Seen: d.seen.Load(), RunDir: o.RunDir, Version: o.Version,
		Files: o.files(), Room: o.wantsRoom(), CNIConfDir: o.CNIConfDir, CNIBinDir: o.CNIBinDir, Socket: o.SocketPath(), Log: o.Log,
	})
}
