package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/flowcontrol"
)

const someCluster = `apiVersion: v1
kind: Config
current-context: it
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: it, context: {cluster: it, user: me}}]
users: [{name: me, user: {}}]
`

// client-go's default is 5 requests a second. With it, a node could not take slots for more than two starts a second,
// nor renew those of 50.
func TestTheClientDoesNotHoldBackTheLeases(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(someCluster), 0o600))
	c, err := newClients(Options{Kubeconfig: path})
	require.NoError(t, err)
	bound, ok := c.kube.(interface {
		RateLimiters() []flowcontrol.RateLimiter
	})
	require.True(t, ok)
	for _, l := range bound.RateLimiters() {
		require.InDelta(t, 50, l.QPS(), 0, "the rate is that of kubelet")
		require.Same(t, bound.RateLimiters()[0], l, "all clients share one rate limiter")
	}
}
