package plugin

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const someCluster = `apiVersion: v1
kind: Config
current-context: it
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: it, context: {cluster: it, user: me}}]
users: [{name: me, user: {}}]
`

// client-go's default is 5 requests a second. With it, a node could not take slots for more than two starts a second,
// nor renew those of 50. All requests share one rate, the same as kubelet's.
func TestTheClientDoesNotHoldBackTheLeases(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(someCluster), 0o600))
	synctest.Test(t, func(t *testing.T) { // only the pauses between requests take time here
		c, err := newClients(Options{Kubeconfig: path})
		require.NoError(t, err)
		began := time.Now()
		for range 50 {
			_, err := c.kube.Pods("").Each(t.Context(), metav1.ListOptions{}, func(runtime.Object) {})
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			_, err = c.kube.DaemonSets("ns").Get(t.Context(), "name", metav1.GetOptions{})
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
			_, err = c.kube.Leases("ns").Get(t.Context(), "name", metav1.GetOptions{})
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		require.InDelta(t, 1, time.Since(began).Seconds(), 0.1, "100 requests at once, and then 50 a second")
	})
}

// A sum over 5,000 nodes lists 100 pages, and reads and writes the status of each policy, within 30 s.
func TestTheClientDoesNotHoldBackTheSum(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(someCluster), 0o600))
	synctest.Test(t, func(t *testing.T) {
		c, err := newClients(Options{Kubeconfig: path})
		require.NoError(t, err)
		began := time.Now()
		for range 150 {
			_, err := c.dynamic.Resource(v1alpha1.NodeResource).List(t.Context(), metav1.ListOptions{})
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		require.InDelta(t, 1, time.Since(began).Seconds(), 0.1, "100 requests at once, and then 50 a second")
	})
}
