//go:build sim

package plugin

import (
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Without the CustomResourceDefinition there are no policies, so the gate must not wait for them.
func TestTheDaemonFailsOpenWithoutTheCustomResourceDefinition(t *testing.T) {
	t.Parallel()
	c := unstartedAPINodeWith(t, []nodeOption{with(func(o *Options) { o.HTTPAddress = freeAddress(t) })})
	c.dynamic.PrependReactor("list", "*", func(clienttest.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(v1alpha1.Resource.GroupResource(), "")
	})
	said := c.logged()
	c.starts()
	c.eventually("the daemon is ready", func() bool { return c.get("/readyz") == http.StatusOK })
	c.eventually("the gate answers", func() bool {
		_, err := os.Lstat(c.options.SocketPath())
		return err == nil
	})
	require.Contains(t, said(), "install its CustomResourceDefinition")
	require.Contains(t, said(), "no limit is in force until it does")
	assert.Equal(t, string(crd.OriginNone), c.d.Status().Config.Origin)
}
