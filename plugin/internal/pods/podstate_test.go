package pods

import (
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// The runtime reports all labels and annotations of a pod. The book keeps only those that are read.
func TestTheBookKeepsOnlyTheLabelsAndAnnotationsThatAreRead(t *testing.T) {
	t.Parallel()
	policy := startpolicy.Compile(&v1alpha1.StartPolicy{Spec: v1alpha1.StartPolicySpec{
		Selector: v1alpha1.PodSelection{Terms: []v1alpha1.PodSelectorTerm{{
			PodSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"tier": "back"}},
		}}},
	}})
	var needs startpolicy.Needs
	needs.Add(policy)
	sandbox := &api.PodSandbox{
		Uid: "u", Namespace: "ns", Name: "web",
		Labels:      map[string]string{"tier": "front", "team": "a", labelTemplateGeneration: "1"},
		Annotations: map[string]string{annotationSource: strings.Repeat("x", 1<<18), "note": "x"},
	}
	p := newPodState(sandbox)
	p.update(sandbox, needs)
	assert.Equal(t, map[string]string{"tier": "front"}, p.Labels)
	assert.True(t, p.Static && p.Template && !p.FromAPI)
	sandbox.Annotations[annotationSource] = sourceAPI
	p.update(sandbox, startpolicy.Needs{})
	assert.Nil(t, p.Labels)
	assert.True(t, !p.Static && p.FromAPI)
}

func TestTheWeightOfAPodsCgroupGivesItsCPURequest(t *testing.T) {
	t.Parallel()
	shares := func(n uint64) *api.PodSandbox {
		return &api.PodSandbox{Linux: &api.LinuxPodSandbox{PodResources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(n)}}}}
	}
	for weight, milli := range map[uint64]int64{0: 0, 2: 0, 204: 200, 307: 300, 1024: 1000} {
		assert.Equal(t, milli, milliCPU(shares(weight)), weight)
	}
}

// A kill of the runtime may interrupt a start. The book may then miss that the container began to run, and treat an
// earlier container of its name as running. kubelet's report about the latest container counts.
func TestProgressGoesByTheLatestContainerOfAName(t *testing.T) {
	t.Parallel()
	joined := time.Unix(1000, 0)
	p := newPodState(&api.PodSandbox{Uid: "u"})
	first := p.create(&api.Container{Id: "first", Name: "app"}, joined.Add(time.Second))
	pod := podwatch.Pod{Containers: map[string]podwatch.Container{"app": {ID: "second", Running: true}}}
	p.create(&api.Container{Id: "second", Name: "app"}, joined.Add(2*time.Second))
	p.containers["first"] = first
	first.running, first.since = true, joined.Add(time.Second)

	run := p.progress(joined, pod)
	assert.Equal(t, Progress{IDs: map[string]string{"app": "second"}, Youngest: joined.Add(2 * time.Second), Made: joined.Add(2 * time.Second), Begun: true}, run)
	assert.True(t, pod.Describes(run.IDs))

	p.exit(p.containers["second"], joined.Add(3*time.Second))
	run = p.progress(joined, pod)
	assert.Empty(t, run.IDs, "the runtime reported its end")
	assert.True(t, run.Failed)
}

// A refused sandbox is removed while its pod waits for kubelet's next attempt, and so may be an older one.
func TestTheRemovalOfARefusedSandboxIsNotTheEndOfThePod(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"old", "refused"}, {"refused", "old"}} {
		b := NewBook()
		b.Update(&api.PodSandbox{Id: "old", Uid: "u"}, startpolicy.Needs{})
		b.SetSandbox("u", "old", "")
		assert.True(t, b.StopSandbox("u", "old"))
		b.Refuse("u")
		for _, id := range order {
			assert.False(t, b.IsLatest("u", id), id)
		}
		b.SetSandbox("u", "new", "")
		assert.False(t, b.IsLatest("u", "old"))
		assert.True(t, b.IsLatest("u", "new"))
	}
}
