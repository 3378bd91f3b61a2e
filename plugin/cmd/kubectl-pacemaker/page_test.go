package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// lines is the program's output, which can be read while the program runs.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	full chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if strings.HasSuffix(l.text.String(), "?pods\n") {
			close(l.full)
		}
	}()
	return l.text.Write(p)
}

func TestPageHasTheDaemonsPageAndThePods(t *testing.T) {
	t.Parallel()
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the daemon's "+r.URL.Path)
	}))
	t.Cleanup(daemon.Close)
	c := &cluster{t: t, daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1")}, pods: []corev1.Pod{pod("web-0", on("n1"))}}
	forwarded := make(chan string, 1)
	out := &lines{full: make(chan struct{})}
	a := &asker{kubectl: c.kubectl, stdout: out, forward: func(ctx context.Context, opened func(string), args ...string) error {
		forwarded <- strings.Join(args, " ")
		opened(strings.TrimPrefix(daemon.URL, "http://"))
		<-ctx.Done()
		return errors.New("killed")
	}}
	root := a.command()
	root.SetArgs([]string{"page", "n1", "--context", "big"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	<-out.full
	assert.Equal(t, "--context=big port-forward --namespace pod-pacemaker pp-1 :http", <-forwarded)
	_, url, _ := strings.Cut(out.text.String(), "\n")
	url = strings.TrimSuffix(url, "?pods\n")
	get := func(url string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		reply, err := client.Do(request)
		require.NoError(t, err)
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return reply.StatusCode, string(body)
	}
	_, body := get(url)
	assert.Equal(t, "the daemon's /", body)
	_, body = get(url + "pods.json")
	assert.Contains(t, body, `"name":"web-0"`)
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	assert.True(t, strings.HasPrefix(host, "127.0.0.1:"), "the page is for this machine alone")
	code, _ := get("http://" + host + "/pods.json")
	assert.Equal(t, http.StatusNotFound, code, "the request has no key")
	cancel()
	require.NoError(t, <-done)
	http.DefaultClient.CloseIdleConnections() // idle connections of the proxy
}

func TestPageEndsWithKubectl(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t, daemons: map[string]corev1.Pod{"n1": daemonPod("pp-1")}}
	for _, opens := range []bool{false, true} {
		a := &asker{kubectl: c.kubectl, stdout: io.Discard, forward: func(_ context.Context, opened func(string), _ ...string) error {
			if opens {
				opened("127.0.0.1:1")
			}
			return errors.New("pods \"pp-1\" is forbidden")
		}}
		root := a.command()
		root.SetArgs([]string{"page", "n1"})
		require.EqualError(t, root.ExecuteContext(t.Context()), "kubectl port-forward ended: pods \"pp-1\" is forbidden")
	}
}

// kubectl writes a line for each address, and one for each connection.
func TestForwardHasTheAddressThatKubectlOpened(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	script := "#!/bin/sh\necho 'Forwarding from 127.0.0.1:4321 -> 9464'\necho 'Forwarding from [::1]:4321 -> 9464'\necho 'Handling connection for 4321'\necho lost connection to $2 >&2\nexit 1\n"
	require.NoError(t, os.WriteFile(dir+"/kubectl", []byte(script), 0o700))
	var opened []string
	err := realForward(t.Context(), func(address string) { opened = append(opened, address) }, "port-forward", "pp-1")
	require.EqualError(t, err, "exit status 1\nlost connection to pp-1")
	assert.Equal(t, []string{"127.0.0.1:4321"}, opened)
}

func TestPageOfANodeWithoutADaemon(t *testing.T) {
	t.Parallel()
	_, err := (&cluster{t: t}).call("page", "n2")
	require.ErrorContains(t, err, "no daemon runs in a pod on node n2")
}
