package main

import (
	"io/fs"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

func TestMetricsProxySaysWhatItLacks(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	kubeconfig := file(t, "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}\n")
	for _, c := range []struct{ kubeconfig, says string }{
		{kubeconfig, "serve HTTP: listen tcp"}, {t.TempDir() + "/none", "access to the API server"},
	} {
		s := newStage(nil)
		assert.Equal(t, exitFailure, s.run(t.Context(), []string{"metrics-proxy", "--kubeconfig", c.kubeconfig, "--listen", l.Addr().String()}))
		assert.Contains(t, s.errs.String(), c.says)
	}
	stderr := fails(t, exitInvalid, "metrics-proxy", "--tls-cert", "/tls/tls.crt")
	assert.Contains(t, stderr, "--tls-cert, --tls-key: one needs the other")
}

func TestTheProxyAnswersAsWhyDoes(t *testing.T) {
	t.Parallel()
	_, err := whyAt(admin.NewClient(t.TempDir()+"/none"))(t.Context(), "shop", "web-0", false)
	require.ErrorIs(t, err, fs.ErrNotExist)
	stderr := fails(t, exitInvalid, "run", "--why-socket", "why.sock")
	assert.Contains(t, stderr, `--why-socket: "why.sock": must be an absolute path`)
}
