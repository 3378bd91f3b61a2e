package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

// Another chart may hold this one, and switch it on and off with the usual condition. Helm passes the value of the
// condition on to this chart, and its own value global.
func TestTheChartCanBeAConditionalDependency(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{
		"{pod-pacemaker: {enabled: true, image: {repository: example.test/pp}}, global: {region: south}}": true,
		"{pod-pacemaker: {enabled: false}}":                       false,
		"{pod-pacemaker: {image: {repository: example.test/pp}}}": true,
	} {
		c, err := Load()
		require.NoError(t, err)
		umbrella := &chartv2.Chart{Metadata: &chartv2.Metadata{
			APIVersion: chartv2.APIVersionV2, Name: "umbrella", Version: "1.0.0",
			Dependencies: []*chartv2.Dependency{{Name: c.Name(), Version: c.Metadata.Version, Condition: c.Name() + ".enabled"}},
		}}
		umbrella.AddDependency(c)
		set := vals(t, values)
		require.NoError(t, chartutil.ProcessDependencies(umbrella, set))
		all, err := util.ToRenderValues(umbrella, set, common.ReleaseOptions{Name: "cluster", Namespace: "pacing"}, common.DefaultCapabilities)
		require.NoError(t, err, values)
		rendered, err := engine.Render(umbrella, all)
		require.NoError(t, err, values)
		daemonSet := rendered["umbrella/charts/pod-pacemaker/templates/daemonset.yaml"]
		assert.Equal(t, want, strings.Contains(daemonSet, "name: cluster-pod-pacemaker\n"), values)
	}
}
