package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/herdpage"
)

// forwarding matches the line that kubectl writes when it has opened a port of this machine.
var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) ->`)

// page serves the page of a node's daemon, with the pods of the node, at a free port of the loopback address until ctx ends.
func (a *asker) page(ctx context.Context, node string) error {
	daemons, err := a.daemonsOn(ctx, node)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0") // because the page names pods
	if err != nil {
		return err
	}
	defer l.Close()
	stopped := ctx
	both, ctx := errgroup.WithContext(ctx)
	serve := func(daemon string) error {
		key := rand.Text()
		srv := &http.Server{
			ReadHeaderTimeout: 5 * time.Second,
			Handler: herdpage.Handler(&url.URL{Scheme: "http", Host: daemon}, key, func(ctx context.Context) ([]herdpage.Row, error) {
				var pods corev1.PodList
				err := a.get(ctx, &pods, "pods", "--all-namespaces", "--field-selector", "spec.nodeName="+node)
				return herdpage.Rows(pods.Items, time.Now()), err
			}),
		}
		defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
		if _, err := fmt.Fprintf(a.stdout, "The page of %s, until you press Ctrl-C. Its address is a secret, because it names pods:\nhttp://%s/%s/?pods\n", node, l.Addr(), key); err != nil {
			return err
		}
		return srv.Serve(l)
	}
	both.Go(func() error {
		err := a.forward(ctx, func(daemon string) { both.Go(func() error { return serve(daemon) }) },
			a.args("port-forward", "--namespace", daemons[0].Namespace, daemons[0].Name, ":http")...)
		return fmt.Errorf("kubectl port-forward ended: %w", err)
	})
	if err := both.Wait(); stopped.Err() == nil {
		return err
	}
	return nil
}

// realForward has kubectl open a port of this machine, calls opened with its address, and blocks until ctx or kubectl ends.
// The error has what kubectl writes to standard error.
func realForward(ctx context.Context, opened func(address string), args ...string) error {
	cmd := exec.CommandContext(ctx, "kubectl", args...) //nolint:gosec // no shell reads them, and the user could run it as well
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // kubectl writes a line for each connection, and must not block
		if m := forwarding.FindStringSubmatch(lines.Text()); m != nil {
			opened(m[1])
		}
	}
	return errors.Join(cmd.Wait(), errors.New(complaint(stderr.String())))
}
