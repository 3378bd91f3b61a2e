package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/metricsproxy"
)

const metricsProxyLong = `Metrics-proxy serves the metrics of this node's daemon to other hosts over TLS. A request
needs a bearer token. The API server decides whose token it is (TokenReview), and whether
that user may get the non-resource URL /metrics (SubjectAccessReview). The decision is
kept for a minute. Without --tls-cert the certificate is self-signed, so clients cannot
verify it.

With --why-socket it also answers at /why/NAMESPACE/POD why a pod of this node waits, to
users who may get that pod. 'kubectl pacemaker why' asks there.

The chart runs it beside the daemon if metricsProxy.enabled is set. It runs as any
user and needs nothing from the node.

Exit codes: 0 stopped by a signal; 1 failure, for example an address in use; 64 wrong
flags.`

func (p *program) metricsProxyCommand() *cobra.Command {
	var o metricsproxy.Options
	var kubeconfig, whySocket string
	var logging logFlags
	cmd := &cobra.Command{
		Use:     "metrics-proxy",
		Short:   "Serve the daemon's metrics over TLS to authorized clients; the DaemonSet runs it",
		Long:    metricsProxyLong,
		Example: "  pod-pacemaker metrics-proxy --listen :19465 --upstream 127.0.0.1:19464",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for _, flag := range []struct{ name, address string }{{"--listen", o.Listen}, {"--upstream", o.Upstream}} {
				if !plugin.IsAddress(flag.address) {
					return invalidUsage("%s: %q: must be HOST:PORT with a port from 1 to 65535", flag.name, flag.address)
				}
			}
			if (o.Certificate == "") != (o.Key == "") {
				return invalidUsage("--tls-cert, --tls-key: one needs the other")
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			log, queue := newLogger(logging, p.stderr)
			defer runLog(queue)()
			p.onLogger(log)
			o.Log = log
			if o.Review, err = metricsproxy.AskAPIServer(kubeconfig, "pod-pacemaker-metrics-proxy/"+version); err != nil {
				return err
			}
			log.WithField("listen", o.Listen).WithField("upstream", o.Upstream).Info("serving metrics")
			if whySocket != "" {
				o.Why = whyAt(admin.NewClient(whySocket))
			}
			return metricsproxy.Serve(ctx, o)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Listen, "listen", ":19465", "`address` to serve at; without a host, all addresses of the node")
	fs.StringVar(&o.Upstream, "upstream", "127.0.0.1:9464", "`address` of the daemon's metrics")
	fs.StringVar(&o.Certificate, "tls-cert", "", "`file` with the certificate (empty: a self-signed one); read again for each connection")
	fs.StringVar(&o.Key, "tls-key", "", "`file` with its key")
	fs.StringVar(&whySocket, "why-socket", "", "`file` of the socket of 'pod-pacemaker run --why-socket' (empty: no question about a pod is answered)")
	fs.StringVar(&kubeconfig, "kubeconfig", "", "`file` with access to the API server (empty: the pod's service account)")
	logging.add(cmd)
	return cmd
}

// whyAt returns what answers questions about pods at the daemon's socket for that, as `pod-pacemaker why` does.
func whyAt(daemon *admin.Client) func(ctx context.Context, namespace, pod string, asJSON bool) (string, error) {
	return func(ctx context.Context, namespace, pod string, asJSON bool) (string, error) {
		w, err := daemon.Why(ctx, namespace, pod)
		switch {
		case err != nil:
			return "", err
		case !asJSON:
			return whyLine(w) + "\n", nil
		}
		text, err := json.MarshalIndent(w, "", "  ")
		return string(text) + "\n", err
	}
}
