//go:build e2e && full

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// The address at which the chart's proxy serves the metrics to other hosts, and the account for a
// PodMonitor.
const (
	metricsPort   = "19465"
	metricsReader = installName + "-metrics-reader"
)

// With metricsProxy.enabled and podMonitor.enabled, another host reads the daemon's metrics by TLS
// with the token that the chart makes for Prometheus: it gets 401 without a token, 403 with the
// token of another account, nothing else of the daemon, and nothing without TLS. A right that is
// taken away ends.
func TestOnlyPermittedTokensReadTheMetrics(t *testing.T) {
	importImage(t, installImage)
	in := installChart(t, map[string]any{
		"metricsProxy": map[string]any{"enabled": true}, "podMonitor": map[string]any{"enabled": true},
	})
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	address, err := node.Forward(t.Context(), lab.NodeIP+":"+metricsPort)
	require.NoError(t, err)
	reader, stranger := tokenOfSecret(t, metricsReader), tokenOfDefault(t)

	eventually(t, "the reader is admitted", func() bool {
		code, _, err := askMetrics(t, "https://"+address+"/metrics", reader)
		return err == nil && code == http.StatusOK
	})
	for _, c := range []struct {
		url, token string
		code       int
		body       string
	}{
		{"https://" + address + "/metrics", reader, http.StatusOK, "\npod_pacemaker_connected 1\n"},
		{"https://" + address + "/metrics", "", http.StatusUnauthorized, "the request has no bearer token that the API server accepts"},
		{"https://" + address + "/metrics", "nonsense", http.StatusUnauthorized, "the request has no bearer token that the API server accepts"},
		{"https://" + address + "/metrics", stranger, http.StatusForbidden, "may not get the non-resource URL /metrics"},
		{"https://" + address + "/status.json", reader, http.StatusNotFound, "404 page not found"},
		{"https://" + address + "/", reader, http.StatusNotFound, "404 page not found"},
		{"http://" + address + "/metrics", reader, http.StatusBadRequest, "HTTP request to an HTTPS server"},
	} {
		code, body, err := askMetrics(t, c.url, c.token)
		require.NoError(t, err, c.url)
		assert.Equal(t, c.code, code, c.url)
		assert.Contains(t, body, c.body, c.url)
		if c.code != http.StatusOK {
			assert.NotContains(t, body, "pod_pacemaker_", c.url)
		}
	}
	direct, err := node.Forward(t.Context(), lab.NodeIP+":19464")
	require.NoError(t, err)
	_, _, err = askMetrics(t, "http://"+direct+"/metrics", reader)
	require.Error(t, err, "the daemon itself listens only on the loopback address")

	openSilently(t, address, 100)
	code, _, err := askMetrics(t, "https://"+address+"/metrics", reader)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code, "beside silent connections")

	kubectl(t, "delete", "clusterrolebinding", metricsReader)
	began := time.Now()
	eventually(t, "the right that was taken away has ended", func() bool {
		code, _, err := askMetrics(t, "https://"+address+"/metrics", reader)
		return err == nil && code == http.StatusForbidden
	})
	for _, container := range pods(t, installName)[0].Status.ContainerStatuses {
		assert.Zero(t, container.RestartCount, container.Name)
	}
	figure(t, "the metrics' proxy takes %.1f MiB (PSS); a right ended %.0f s after it was taken away", metricsProxyPSS(t)/mib, time.Since(began).Seconds())
	in.uninstall(t)
}

// askMetrics requests a URL with a token, and does not verify the certificate.
func askMetrics(t *testing.T, url, token string) (code int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13},
	}}
	reply, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(text), err
}

// tokenOfSecret returns the token that Kubernetes writes into an account's Secret.
func tokenOfSecret(t *testing.T, name string) (token string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the Secret %s has a token", name), func() bool {
		secret, err := node.Client().CoreV1().Secrets(installName).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		token = string(secret.Data["token"])
		return token != ""
	})
	return token
}

// tokenOfDefault returns the token of an account without rights.
func tokenOfDefault(t *testing.T) string {
	t.Helper()
	reply, err := node.Client().CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return reply.Status.Token
}

// openSilently opens connections that send nothing, until the test ends.
func openSilently(t *testing.T, address string, connections int) {
	t.Helper()
	var dialer net.Dialer
	for range connections {
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
}

// metricsProxyPSS returns the memory of the only running proxy.
func metricsProxyPSS(t *testing.T) (pss float64) {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	all, err := fs.AllProcs()
	require.NoError(t, err)
	found := 0
	for _, process := range all {
		if line, err := process.CmdLine(); err != nil || len(line) < 2 || line[1] != "metrics-proxy" {
			continue // an ended process, or another program
		}
		memory, err := process.ProcSMapsRollup()
		require.NoError(t, err)
		pss += float64(memory.Pss)
		found++
	}
	require.Equal(t, 1, found)
	return pss
}
