//go:build e2e && full

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each kind of limit and selection that a StartPolicy has holds pods by containerd's account: requests of memory and of
// an extended resource, those of the pods that start, linear steps, groups across namespaces and controllers,
// alternative terms with expressions, and overrides that are merged.
func TestStartPolicyHoldsByEachKind(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{}")
	advertise(t, 8)
	for name, holds := range map[string]func(t *testing.T, d *daemon){
		"memory":            func(t *testing.T, d *daemon) { holdsByRequests(t, d, "memory", "70Mi", "100Mi") },
		"extended resource": func(t *testing.T, d *daemon) { holdsByRequests(t, d, device, "2", "3") },
		"memory of starts":  holdsStartsByRequests,
		"linear steps":      holdsInSteps,
		"groups":            holdsInGroups,
		"terms":             holdsByTerms,
		"merged overrides":  holdsByMergedOverrides,
	} {
		t.Run(name, func(t *testing.T) { holds(t, d) })
	}
}

// awaitHeld waits until the daemon says that a StartPolicy holds the pod.
func (d *daemon) awaitHeld(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, name+" waits for a policy", func() bool {
		_, detail := d.waitsFor(t, ns, name)
		return strings.Contains(detail, "policy ")
	})
}

// Of two pods that request more together than the limit, the second starts when the first is gone.
func holdsByRequests(t *testing.T, d *daemon, name, each, limit string) {
	d.enforce(t, "amount", fmt.Sprintf(`{selector: {terms: [{podSelector: {matchLabels: {kind: amount}}}]}, limits: {running: {requests: {%s: %s}}}}`, name, limit))
	ns, of := namespace(t), map[string]string{"kind": "amount"}
	labelled(t, ns, "first", of, herdPod(0.1, demanding(name, each)))
	awaitReady(t, ns, "first")
	labelled(t, ns, "second", of, herdPod(0.1, demanding(name, each)))
	d.awaitHeld(t, ns, "second")
	labelled(t, ns, "without", of, herdPod(0.1))
	awaitReady(t, ns, "without")
	assert.Equal(t, []string{"first", "without"}, begun(t, ns), "pods that have begun")

	gone := time.Now()
	require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), "first", metav1.DeleteOptions{}))
	awaitReady(t, ns, "second")
	all := containers(t, ns)
	i := slices.IndexFunc(all, func(c container) bool { return c.pod == "second" })
	require.GreaterOrEqual(t, i, 0)
	assert.True(t, all[i].started.After(gone), "the second started %s before the first was deleted", gone.Sub(all[i].started))
}

// Pods that together request at most the limit start at a time.
func holdsStartsByRequests(t *testing.T, d *daemon) {
	const herd = 6
	d.enforce(t, "starts", `{selector: {terms: [{podSelector: {matchLabels: {app: starts}}}]}, limits: {starting: {requests: {memory: 150Mi}}}}`)
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "starts", herd, herdPod(0.1, demanding("memory", "70Mi"), sleeping("2s")))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.Equal(t, 2, mostStarting(t, all), "pods between the start of their process and ready")
}

// The next step of pods begins when all pods of the step before are ready, until maxStagger are ready.
func holdsInSteps(t *testing.T, d *daemon) {
	const herd, step, stagger = 10, 3, 6
	d.enforce(t, "steps", fmt.Sprintf(`{selector: {terms: [{podSelector: {matchLabels: {app: steps}}}]}, limits: {pacer: {linear: {step: %d, maxStagger: %d}}}}`, step, stagger))
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "steps", herd, herdPod(0.1, sleeping("2s")))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	all := lives(t, ns)
	logLives(t, begin, all)
	for i, l := range all {
		ready := 0
		for _, other := range all {
			if other.ready.Before(l.started) {
				ready++
			}
		}
		assert.GreaterOrEqual(t, ready, min(i/step*step, stagger), "ready pods when pod number %d began", i+1)
	}
	most := mostStarting(t, all[:stagger])
	assert.LessOrEqual(t, most, step, "pods between the start of their process and ready, of the first steps")
	assert.Greater(t, most, 1, "the same: a step has more than one pod")
}

// Pods with the same value are one group, whatever their namespace and controller, and each group has its own limit.
func holdsInGroups(t *testing.T, d *daemon) {
	d.enforce(t, "groups", `{selector: {terms: [{podSelector: {matchExpressions: [{key: app, operator: In, values: [red, blue]}]}}]},
  groupBy: ".metadata.labels.app", limits: {starting: {pods: 1}}}`)
	one, other := namespace(t), namespace(t)
	begin := time.Now()
	slow := herdPod(0.1, sleeping("2s"))
	deploy(t, one, "red", 2, slow)
	deploy(t, other, "red", 2, slow)
	labelled(t, other, "bare", map[string]string{"app": "red"}, slow)
	deploy(t, other, "blue", 3, slow)
	eventually(t, "all pods are ready", func() bool { return allReady(t, one, 2) && allReady(t, other, 6) })
	all := append(lives(t, one), lives(t, other)...)
	logLives(t, begin, all)
	groups := map[string][]life{}
	for _, l := range all {
		groups[l.pod.Labels["app"]] = append(groups[l.pod.Labels["app"]], l)
	}
	assert.Len(t, groups["red"], 5)
	for group, some := range groups {
		assert.Equal(t, 1, mostStarting(t, some), "pods of %s between the start of their process and ready", group)
	}
	assert.Equal(t, 2, mostStarting(t, all), "pods of both groups between the start of their process and ready")
}

// A pod that any term selects is held. Within a term, all labels and expressions must match.
func holdsByTerms(t *testing.T, d *daemon) {
	one, other := namespace(t), namespace(t)
	d.enforce(t, "terms", fmt.Sprintf(`{limits: {running: {pods: 0}}, selector: {terms: [
  {podSelector: {matchExpressions: [{key: tier, operator: In, values: [db, cache]}]}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [%[1]s, %[2]s]}]}},
  {podSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [web]}, {key: free, operator: DoesNotExist}]}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}}]}}`, one, other))
	held, free := map[string][]string{one: {"db"}, other: {"cache", "none"}}, map[string][]string{one: {"none", "web"}, other: {"free", "web"}}
	labels := map[string]map[string]string{
		"db": {"tier": "db"}, "cache": {"tier": "cache"}, "web": {"tier": "web"}, "free": {"free": "yes"}, "none": nil,
	}
	for _, ns := range []string{one, other} {
		for _, name := range slices.Concat(held[ns], free[ns]) {
			labelled(t, ns, name, labels[name], herdPod(0.1))
		}
	}
	for _, ns := range []string{one, other} {
		awaitReady(t, ns, free[ns]...)
		for _, name := range held[ns] {
			d.awaitHeld(t, ns, name)
		}
		assert.Equal(t, free[ns], begun(t, ns), "pods of %s that have begun", ns)
	}
	kubectl(t, "delete", "startpolicy", "terms")
	for _, ns := range []string{one, other} {
		awaitReady(t, ns, held[ns]...)
	}
}

// Of several overrides in force, each limit comes from the first that sets it. One that is over sets nothing.
func holdsByMergedOverrides(t *testing.T, d *daemon) {
	d.enforce(t, "merged", `{selector: {terms: [{podSelector: {matchLabels: {kind: merged}}}]}, limits: {running: {pods: 0}},
  temporaryOverrides: [
    {end: "2020-01-01T00:00:00Z", limits: {running: {pods: 0, requests: {cpu: 1m}}}},
    {begin: "2020-01-01T00:00:00Z", limits: {running: {requests: {cpu: 300m}}}},
    {begin: "2020-01-01T00:00:00Z", limits: {running: {pods: 5, requests: {cpu: "2", memory: 100Mi}}}}]}`)
	ns, of := namespace(t), map[string]string{"kind": "merged"}
	for _, ready := range []string{"cpu", "memory"} {
		amount := map[string]string{"cpu": "200m", "memory": "70Mi"}[ready]
		labelled(t, ns, ready, of, herdPod(0.1, requesting(ready, amount)))
		awaitReady(t, ns, ready)
		labelled(t, ns, "more-"+ready, of, herdPod(0.1, requesting(ready, amount)))
		d.awaitHeld(t, ns, "more-"+ready)
	}
	labelled(t, ns, "without", of, herdPod(0.1))
	awaitReady(t, ns, "without")
	assert.Equal(t, []string{"cpu", "memory", "without"}, begun(t, ns), "pods that have begun")
	kubectl(t, "delete", "startpolicy", "merged")
	awaitReady(t, ns, "more-cpu", "more-memory")
}
