package plugin

import (
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALargeEnvironmentIsReportedAndRefusedWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		n := newNode(t, noLimit, with(func(o *Options) { o.RefuseLargeEnvironments = refuses }))
		pod := &api.PodSandbox{Id: "s", Uid: "u", Namespace: "ns", Name: "web"}
		creates := func(bytes int) error {
			_, _, err := handlerOf(n.d).CreateContainer(t.Context(), pod, &api.Container{Id: "c", Name: "app", PodSandboxId: "s", Env: []string{"A=" + strings.Repeat("x", bytes)}})
			return err
		}
		require.NoError(t, creates(mostListed-100))
		assert.Zero(t, counted(t, n, "pod_pacemaker_large_environments_total"))
		err := creates(mostListed)
		assert.Equal(t, refuses, err != nil, "%v", err)
		pod.Labels = map[string]string{"a": strings.Repeat("x", mostListed)}
		err = handlerOf(n.d).RunPodSandbox(t.Context(), pod)
		assert.Equal(t, refuses, err != nil, "%v", err)
		assert.InDelta(t, 2, counted(t, n, "pod_pacemaker_large_environments_total"), 0)
	}
}
