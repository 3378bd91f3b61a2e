package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

func TestCheckSaysWhatPoliciesMean(t *testing.T) {
	t.Parallel()
	const head = "---\napiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\n"
	path := file(t, twoAtATime+
		head+"metadata: {name: t1}\nspec: {nodeSelector: {pool: a}, selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 3, requests: {cpu: 200m}}}}\n"+
		head+"metadata: {name: pulls}\nspec: {selector: {terms: [{podSelector: {}}]}, groupBy: \".spec.containers[0].image\","+
		" limits: {pacer: {exponential: {minInitial: 4, multiplier: 4, maxStagger: 16}}}}\n"+
		head+"metadata: {name: registry}\nspec: {scope: Cluster, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 10}}}\n")
	stdout := says(t, "check", path, "--cores", "4")
	for _, want := range []string{
		path + ": valid: PacemakerConfig \"two-at-a-time\"",
		path + ": valid: StartPolicy \"t1\", for nodes with pool=a\nOf all its pods together, on each node: 3 running at a time, 200m of cpu running at a time.\n",
		"StartPolicy \"pulls\", for every node\nOf each group of pods with the same .spec.containers[0].image, on each node: 4 first, then 4 for each that is ready, until 16 are.\n",
		"Of all its pods together, in the cluster: 10 starting at a time.\n",
	} {
		assert.Contains(t, stdout, want)
	}

	code, _, stderr := call(t, "check", file(t, twoAtATime+head+"metadata: {name: t1}\nspec: {selector: {terms: []}, limits: {}}\n"))
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stderr, "spec.selector.terms: Required value")
	assert.Contains(t, stderr, "spec.limits: Required value")
}

func TestCheckWarnsOfAGroupByThatFindsNothing(t *testing.T) {
	t.Parallel()
	path := file(t, "apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: t1}\n"+
		"spec: {selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 3}}, groupBy: \".spec.contaners[0].image\"}\n")
	assert.Contains(t, says(t, "check", path), "\nWarning: no pod has .spec.contaners, ")
}

func TestCheckExplainsOverrides(t *testing.T) {
	t.Parallel()
	objects := crd.ParseAll([]byte(`apiVersion: pod-pacemaker.io/v1alpha1
kind: StartPolicy
metadata: {name: p}
spec:
  selector: {terms: [{podSelector: {}}]}
  limits: {starting: {pods: 0}, running: {pods: 9}}
  temporaryOverrides:
    - {begin: "2026-01-01T00:00:00Z", end: "2026-01-31T00:00:00Z", limits: {starting: {pods: 1}}}
    - {begin: "2026-02-01T00:00:00+01:00", end: "2026-03-01T00:00:00+01:00", limits: {starting: {pods: 2}}}
    - {begin: "2026-02-10T00:00:00Z", end: "2026-02-20T00:00:00Z", limits: {starting: {pods: 3}, running: {pods: 0}}}
    - {end: "2026-01-10T00:00:00Z", limits: {running: {pods: 8}}}
    - {begin: "2026-03-03T00:00:00Z", limits: {running: {pods: 7}}}
`))
	require.Len(t, objects, 1)
	require.NoError(t, objects[0].Err)
	const head = "\"p\", for every node\nOf all its pods together, on each node: 0 starting at a time (holds every pod), 9 running at a time."
	const second = "\nFrom 2026-02-01T00:00:00+01:00 to 2026-03-01T00:00:00+01:00: 2 starting at a time."
	const third = "\nFrom 2026-02-10T00:00:00Z to 2026-02-20T00:00:00Z: 3 starting at a time, 0 running at a time (holds every pod)."
	const last = "\nFrom 2026-03-03T00:00:00Z on: 7 running at a time."
	for day, want := range map[string]string{
		"2025-12-31T12:00:00Z": head + "\nFrom 2026-01-01T00:00:00Z to 2026-01-31T00:00:00Z: 1 starting at a time." + second + third +
			"\nTo 2026-01-10T00:00:00Z: 8 running at a time." + last + "\nAt present: 0 starting at a time (holds every pod), 8 running at a time.",
		"2026-01-31T12:00:00Z": head + second + third + last,
		"2026-02-15T00:00:00Z": head + second + third + last + "\nAt present: 2 starting at a time, 0 running at a time (holds every pod).",
		"2026-02-20T00:00:01Z": head + second + last + "\nAt present: 2 starting at a time, 9 running at a time.",
		"2026-03-01T00:00:00Z": head + last,
		"2026-03-03T00:00:00Z": head + last + "\nAt present: 0 starting at a time (holds every pod), 7 running at a time.",
	} {
		now, err := time.Parse(time.RFC3339, day)
		require.NoError(t, err)
		assert.Equal(t, want, policyText(now, objects[0].Policy), day)
	}
}

// Without a config, only the policies hold pods back.
func TestStatusWithPoliciesAlone(t *testing.T) {
	t.Parallel()
	s := admin.Status{About: admin.About{Ready: true, Limits: admin.NoLimits}}
	text := func() string { return strings.Join(headLines(s), "\n") + "\n" }
	assert.Contains(t, text(), "config    none\n  limits    none: no pod is held\n")
	s.Policies = []admin.Policy{{Name: "registry"}}
	assert.Contains(t, text(), "config    none\n  limits    none\n")
}

func TestStatusListsTheGroupsOfPolicies(t *testing.T) {
	t.Parallel()
	lines := policiesTable([]admin.Policy{
		{Name: "t1", GroupCount: 40, Groups: []v1alpha1.PolicyGroup{{
			Group: "nginx", Waiting: 2, Used: v1alpha1.PolicyUse{Running: v1alpha1.PodUse{Pods: 3, Requests: map[string]v1alpha1.UsedQuantity{"memory": "1Gi", "cpu": "200m"}}},
			Throttled: []string{"running.requests.cpu"},
		}}},
		{Name: "broken", Fault: "no namespaces"},
	})
	require.Len(t, lines, 4)
	assert.Equal(t, "  t1      nginx        2        0         3 (cpu 200m, memory 1Gi)  running.requests.cpu", lines[1])
	assert.Contains(t, lines[2], "and 39 more")
	assert.Contains(t, lines[3], "HOLDS NO POD: no namespaces")
}
