package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/metricsproxy"
)

const metricsProxyLong = `Metrics-proxy serves the metrics of this node's daemon to other hosts, by TLS, and
nothing else of the daemon. The API server says whose the bearer token of a request is
(TokenReview), and whether that user may get the non-resource URL /metrics
(SubjectAccessReview); what it said counts for a minute. It signs its certificate
itself, so that clients cannot verify it.

The chart runs it beside the daemon with metricsProxy.enabled. It runs as any user, and
needs nothing of the node.

Exit codes: 0 stopped by a signal; 1 failed, for example because the address is in use;
64 the flags are wrong.`

func (p *program) metricsProxyCommand() *cobra.Command {
	var o metricsproxy.Options
	var kubeconfig string
	var log logFlags
	cmd := &cobra.Command{
		Use:     "metrics-proxy",
		Short:   "Serve the daemon's metrics by TLS to those who may read them, for the DaemonSet",
		Long:    metricsProxyLong,
		Example: "  pod-pacemaker metrics-proxy --listen :19465 --upstream 127.0.0.1:19464",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []struct{ name, address string }{{"--listen", o.Listen}, {"--upstream", o.Upstream}} {
				if badAddress(flag.address) != nil {
					return &wrongUsage{fmt.Sprintf("%s: %q: must be HOST:PORT with a port from 1 to 65535", flag.name, flag.address)}
				}
			}
			return p.metricsProxy(cmd.Context(), o, kubeconfig, log)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Listen, "listen", ":19465", "`address` to serve at; without a host, all of the node's")
	fs.StringVar(&o.Upstream, "upstream", "127.0.0.1:9464", "`address` of the daemon's metrics")
	fs.StringVar(&kubeconfig, "kubeconfig", "", "`file` with access to the API server (empty: the pod's service account)")
	log.add(cmd)
	return cmd
}

// metricsProxy serves until ctx ends.
func (p *program) metricsProxy(ctx context.Context, o metricsproxy.Options, kubeconfig string, flags logFlags) (err error) {
	log, queue := newLogger(flags, p.stderr)
	defer runLog(queue)()
	p.onLogger(log)
	o.Log = log
	if o.Reviewer, err = metricsproxy.AskAPIServer(kubeconfig, "pod-pacemaker-metrics-proxy/"+version); err != nil {
		return err
	}
	log.WithField("listen", o.Listen).WithField("upstream", o.Upstream).Info("begins to serve metrics")
	return metricsproxy.Serve(ctx, o)
}
