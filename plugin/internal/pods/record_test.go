package pods

import (
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// The runtime tells all labels and annotations of a pod. Kept is what somebody reads.
func TestARecordKeepsOfLabelsAndAnnotationsWhatIsRead(t *testing.T) {
	t.Parallel()
	policy, errs := startpolicy.Compile(&v1alpha1.StartPolicy{Spec: v1alpha1.StartPolicySpec{
		Selector: v1alpha1.PodSelection{Terms: []v1alpha1.PodSelectorTerm{{
			PodSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"tier": "back"}},
		}}},
	}})
	assert.Empty(t, errs)
	var needs startpolicy.Needs
	needs.Add(policy)
	sandbox := &api.PodSandbox{
		Uid: "u", Namespace: "ns", Name: "web",
		Labels:      map[string]string{"tier": "front", "team": "a", labelTemplateGeneration: "1"},
		Annotations: map[string]string{annotationSource: strings.Repeat("x", 1<<18), "note": "x"},
	}
	r := newRecord(sandbox)
	r.see(sandbox, needs)
	assert.Equal(t, map[string]string{"tier": "front"}, r.Labels)
	assert.True(t, r.Static && r.Template && !r.FromAPI)
	sandbox.Annotations[annotationSource] = sourceAPI
	r.see(sandbox, startpolicy.Needs{})
	assert.Nil(t, r.Labels)
	assert.True(t, !r.Static && r.FromAPI)
}

func TestTheWeightOfAPodsCgroupTellsItsCPU(t *testing.T) {
	t.Parallel()
	shares := func(n uint64) *api.PodSandbox {
		return &api.PodSandbox{Linux: &api.LinuxPodSandbox{PodResources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(n)}}}}
	}
	for weight, milli := range map[uint64]int64{0: 0, 2: 0, 204: 200, 307: 300, 1024: 1000} {
		assert.Equal(t, milli, milliCPU(shares(weight)), weight)
	}
}
