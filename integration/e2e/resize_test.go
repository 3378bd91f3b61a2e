//go:build e2e && full

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// resized is a node whose limit changes while pods hold slots.
type resized struct {
	t         *testing.T
	d         *daemon
	ns        string
	exemptNS  string
	bystander int
}

// The limit of the config is raised, and then lowered below the number of held slots: no slot is
// lost or added, and the starts stay within the limit.
func TestTheLimitChangesUnderHeldSlots(t *testing.T) {
	r := &resized{t: t, d: startDaemon(t, placesForAll...), ns: namespace(t), exemptNS: namespace(t)}
	applyConfig(t, "resized", fmt.Sprintf("{exemptions: {namespaces: [%s]}, throttleConfig: {maxConcurrent: {value: 3}, noProgressAfter: 0s}}", r.exemptNS))
	eventually(t, "the limit is 3", func() bool { return r.d.status(t).Limit == 3 })
	first, second, third := newLatch(t), newLatch(t), newLatch(t)
	deploy(t, r.ns, "first", 3, herdPod(0.1, first.holds))
	r.run("first", 3)
	r.wait("second", 2, second)
	r.wait("third", 4, third)

	r.d.limit(t, 5)
	r.run("second", 2)
	r.assertBegun(5, "with the limit raised to 5")
	r.d.limit(t, 2)
	first.release(t)
	eventually(t, "the first pods are ready", func() bool { return readyOf(t, r.ns, "first") == 3 })
	eventually(t, "their slots are free", func() bool { return len(r.d.status(t).Starting) == 2 })
	r.assertBegun(5, "with the limit lowered to 2, and 2 of 5 slots held still")
	second.release(t)
	r.run("third", 2)
	r.assertBegun(7, "with both of 2 slots free again")
	third.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, r.ns, 9) })
	r.d.idle(t)

	all := lives(t, r.ns)
	logLives(t, all[0].started, all)
	assertUnharmed(t, all)
	assert.Equal(t, 2, mostStarting(t, all[5:]), "of the last pods, those between the start of their process and ready")
}

// run waits until n pods of a group run.
func (r *resized) run(group string, n int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d pods of the group %s run", n, group), func() bool { return begunOf(r.t, r.ns, group) >= n })
}

// wait creates a group of pods, and waits until all of them wait at the gate.
func (r *resized) wait(group string, n int32, l latch) {
	r.t.Helper()
	deploy(r.t, r.ns, group, n, herdPod(0.1, l.holds))
	eventually(r.t, "the "+group+" wait at the gate", func() bool {
		waiting := 0
		for _, p := range pods(r.t, r.ns) {
			if strings.HasPrefix(p.Name, group) && created(r.t, r.ns, p.Name) {
				waiting++
			}
		}
		return waiting == int(n)
	})
}

// assertBegun checks how many pods have begun. It starts an exempt pod first: meanwhile a surplus
// pod would have begun.
func (r *resized) assertBegun(n int, when string) {
	r.t.Helper()
	r.bystander++
	name := fmt.Sprintf("bystander-%d", r.bystander)
	createPod(r.t, r.exemptNS, name, herdPod(0.1))
	eventually(r.t, "an exempt pod is ready", func() bool { return isReady(r.t, r.exemptNS, name) })
	assert.Len(r.t, begun(r.t, r.ns), n, "pods that have begun %s", when)
}
