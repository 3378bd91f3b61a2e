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

// With client-go's default, 5 requests a second, a node could not take slots for more than
// two starts a second, nor renew those of 50.
func TestTheClientDoesNotHoldBackTheLeases(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(someCluster), 0o600))
	c, err := reachCluster(Options{Kubeconfig: path})
	require.NoError(t, err)
	bound, ok := c.kube.(interface {
		RateLimiters() []flowcontrol.RateLimiter
	})
	require.True(t, ok)
	for _, l := range bound.RateLimiters() {
		require.InDelta(t, 50, l.QPS(), 0, "as kubelet's own")
		require.Same(t, bound.RateLimiters()[0], l, "one for all")
	}
}
