package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// serving makes the pod of a daemon one that answers questions through the API server.
func serving(daemon corev1.Pod) corev1.Pod {
	daemon.Spec.Containers = []corev1.Container{
		{Name: container, Args: []string{"--why-socket=/why/why.sock"}, Ports: []corev1.ContainerPort{{ContainerPort: 19464}}},
		{Name: "metrics-proxy", Args: []string{"metrics-proxy", "--why-socket=/why/why.sock"}, Ports: []corev1.ContainerPort{{ContainerPort: 19465}}},
	}
	return daemon
}

func TestWhyAsksThroughTheAPIServerAndOtherwiseInThePod(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/pod-pacemaker/pods/https:pp-2:19465/proxy/why/shop/web-0"
	const line, inPod = "shop/web-0: waiting 12s, place 4 of 9\n", "shop/web-0: waiting 13s, place 4 of 9\n"
	forbidden, unknown := errors.New("403 Forbidden: no pods/proxy"), errors.New("404 Not Found: shop/web-0: "+notKnown)
	for name, c := range map[string]struct {
		daemon  corev1.Pod
		args    []string
		answer  string
		err     error
		says    string
		execs   bool
		refuses string
	}{
		"permitted":            {daemon: serving(daemonPod("pp-2")), answer: line, says: "shop/web-0: waiting 12s, place 4 of 9; on n2\n"},
		"as JSON":              {daemon: serving(daemonPod("pp-2")), args: []string{"-o", "json"}, answer: "{}\n", says: "{}\n"},
		"not known":            {daemon: serving(daemonPod("pp-2")), err: unknown, says: "shop/web-0: not waiting for pod-pacemaker: it is Pending, and its status has no reason\n"},
		"forbidden":            {daemon: serving(daemonPod("pp-2")), err: forbidden, execs: true, says: "shop/web-0: waiting 13s, place 4 of 9; on n2\n"},
		"not served":           {daemon: daemonPod("pp-2"), execs: true, says: "shop/web-0: waiting 13s, place 4 of 9; on n2\n"},
		"forbidden everywhere": {daemon: serving(daemonPod("pp-2")), err: forbidden, execs: true, refuses: "no pods/exec", says: "(the daemon of n2 cannot be asked: 403 Forbidden: no pods/proxy; no pods/exec)"},
		"not served, no exec":  {daemon: daemonPod("pp-2"), execs: true, refuses: "no pods/exec", says: "(the daemon of n2 cannot be asked: no pods/exec)"},
	} {
		var asked []string
		k := &cluster{t: t, pods: []corev1.Pod{pod("web-0", on("n2"))}, daemons: map[string]corev1.Pod{"n2": c.daemon}, says: map[string]string{"pp-2 why shop/web-0": inPod}, refuses: c.refuses}
		k.read = func(_ context.Context, path string) (string, error) {
			asked = append(asked, path)
			return c.answer, c.err
		}
		out, err := k.call(append([]string{"why", "shop/web-0"}, c.args...)...)
		require.NoError(t, err, name)
		assert.Contains(t, out, c.says, name)
		execs := slices.ContainsFunc(k.asked, func(line string) bool { return strings.HasPrefix(line, "exec ") })
		assert.Equal(t, c.execs, execs, name)
		if len(c.daemon.Spec.Containers) > 0 {
			want := path
			if len(c.args) > 0 {
				want += "?output=json"
			}
			assert.Equal(t, []string{want}, asked, name)
		}
	}
}

// The plugin reaches the API server by the flags that kubectl gets.
func TestTheAPIServerIsReachedByKubectlsFlags(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: a,
contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: b}}],
clusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: {server: 'https://b'}}],
users: [{name: a, user: {token: a}}, {name: b, user: {token: b}}]}`), 0o600))
	for want, flags := range map[string][]string{
		"https://a a":    nil,
		"https://b b":    {"--context", "b"},
		"https://a b":    {"--user", "b"},
		"https://b a":    {"--cluster", "b"},
		"https://c mine": {"--server", "https://c", "--token", "mine"},
	} {
		a := &asker{}
		require.NoError(t, a.command().ParseFlags(append([]string{"--kubeconfig", kubeconfig}, flags...)))
		config, err := a.access()
		require.NoError(t, err)
		assert.Equal(t, want, config.Host+" "+config.BearerToken)
	}
}

func TestTheTokenOfAnotherUserIsNotPassedOn(t *testing.T) {
	t.Parallel()
	a := &asker{}
	require.NoError(t, a.command().ParseFlags([]string{"--as", "jane"}))
	_, err := a.throughAPIServer(t.Context(), serving(daemonPod("pp-2")), pod("web-0", on("n2")))
	require.ErrorContains(t, err, "--as: the token that the daemon sees is your own")
}

// The API server keeps the header Authorization, and passes the other one on.
func TestTheTokenGoesAlongInAHeaderThatTheAPIServerPassesOn(t *testing.T) {
	t.Parallel()
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		if r.URL.Path == "/base/no" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "answer "+r.URL.String()+"\n")
	}))
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("from a file"), 0o600))
	for want, config := range map[string]*rest.Config{
		"Bearer t":             {BearerToken: "t"},
		"Bearer from a file":   {BearerTokenFile: token},
		"Bearer from a plugin": {ExecProvider: execToken(t, "from a plugin")},
	} {
		config.Host = server.URL + "/base"
		text, err := readThroughAPIServer(t.Context(), config, "/yes?output=json")
		require.NoError(t, err)
		assert.Equal(t, "answer /base/yes?output=json\n", text)
		assert.Equal(t, want, got.Get("Authorization"))
		assert.Equal(t, want, got.Get("Pod-Pacemaker-Authorization"))
	}
	_, err := readThroughAPIServer(t.Context(), &rest.Config{Host: server.URL + "/base", BearerToken: "t"}, "/no")
	require.EqualError(t, err, "403 Forbidden: answer /base/no")
	_, err = readThroughAPIServer(t.Context(), &rest.Config{Host: server.URL}, "/yes")
	require.ErrorIs(t, err, errNoToken)
}

// execToken returns a credential plugin that prints a token.
func execToken(t *testing.T, token string) *api.ExecConfig {
	t.Helper()
	return &api.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode, Command: "/bin/echo",
		Args: []string{`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"` + token + `"}}`},
	}
}
