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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	daemon, ended, err := a.forward(ctx, a.args("port-forward", "--namespace", daemons[0].Namespace, daemons[0].Name, ":http")...)
	if err != nil {
		return err
	}
	key := rand.Text()
	srv := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: herdpage.Handler(&url.URL{Scheme: "http", Host: daemon}, key, func(ctx context.Context) ([]herdpage.Row, error) {
			var pods corev1.PodList
			err := a.get(ctx, &pods, "pods", "--all-namespaces", "--field-selector", "spec.nodeName="+node)
			return herdpage.Rows(pods.Items, time.Now()), err
		}),
	}
	if _, err := fmt.Fprintf(a.stdout, "The page of %s, until you press Ctrl-C. Its address is a secret, because it names pods:\nhttp://%s/%s/?pods\n", node, l.Addr(), key); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case <-ctx.Done():
		<-ended //nolint:errcheck // it was killed
	case err = <-ended:
		err = fmt.Errorf("kubectl port-forward ended: %w", err)
	}
	err = errors.Join(err, srv.Close())
	if fault := <-served; !errors.Is(fault, http.ErrServerClosed) {
		err = errors.Join(err, fault)
	}
	return err
}

// realForward has kubectl open a port of this machine until ctx ends, and returns its address. When kubectl
// has ended, ended receives its error.
func realForward(ctx context.Context, args ...string) (address string, ended <-chan error, err error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...) //nolint:gosec // no shell reads them, and the user could run it as well
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := forwarding.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
			break
		}
	}
	if address == "" {
		return "", nil, errors.Join(errors.New(strings.TrimSpace(stderr.String())), cmd.Wait())
	}
	done := make(chan error, 1)
	go func() {
		for lines.Scan() { // kubectl writes a line for each connection, and must not block
		}
		done <- errors.Join(cmd.Wait(), errors.New(strings.TrimSpace(stderr.String())))
	}()
	return address, done, nil
}
