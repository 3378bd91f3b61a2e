//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// upgradedImage is the image that replaces installImage.
const upgradedImage = "pod-pacemaker.local/pod-pacemaker:e2e-next"

// The DaemonSet's image is changed while 20 pods wait: the next daemon has them all in their order,
// counts the pods that were created while no daemon ran, and keeps the limit.
func TestUpgradeWhilePodsWait(t *testing.T) {
	const made = 3
	importImage(t, installImage)
	importImage(t, upgradedImage)
	in := installChart(t, map[string]any{"gate": map[string]any{"timeout": "1h"}})
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	eventually(t, "the daemon is ready", func() bool { return d.status(t).Ready })
	ns := namespace(t)
	begin := time.Now()
	crowd(t, d, ns, sleeping("60s"))
	order := d.waitingNames(t)

	out, err := node.Kubectl(t.Context(), "-n", installName, "set", "image", "ds/"+installName, "*="+upgradedImage)
	require.NoError(t, err, "%s", out)
	watched(t, "the old daemon is gone", func() bool { _, err := d.admin.Status(t.Context()); return err != nil })
	gone := time.Now()
	for i := range made {
		createPod(t, ns, fmt.Sprintf("gap-%d", i), herdPod(0.1, sleeping("20s")))
	}
	eventually(t, "the next daemon is ready, with all waiting pods", func() bool {
		s, err := d.admin.Status(t.Context())
		return err == nil && s.Ready && s.Gate.Waiters >= crowded && inGap(s.Starting)+inGap(s.Waiting) == made
	})
	gap := time.Since(gone)
	s := d.status(t)
	assert.Equal(t, order, herdOf(d.waitingNames(t)), "the order of the waiting pods")
	back := time.Now()

	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, crowdLimit+crowded+made) })
	d.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	assertUnharmed(t, all)
	assertStartsInOrder(t, order, all, crowdLimit)
	unpaced := 0 // processes that began while no daemon ran, at most made
	for _, l := range all {
		if strings.HasPrefix(l.pod.Name, "gap-") && l.started.Before(back) {
			unpaced++
		}
	}
	assert.GreaterOrEqual(t, len(s.Starting), crowdLimit+unpaced, "starts under way that hold a slot")
	waited := slices.DeleteFunc(slices.Clone(all), func(l life) bool { return strings.HasPrefix(l.pod.Name, "gap-") })
	assert.LessOrEqual(t, mostStarting(t, waited), crowdLimit, "pods between the start of their process and ready")
	assert.LessOrEqual(t, mostStarting(t, all), crowdLimit+unpaced, "pods between the start of their process and ready, including those that started without a daemon")
	eventually(t, "no hook and no runc is left", func() bool { return len(hooks(t)) == 0 })
	figure(t, "the next daemon had all %d waiting pods %.1f s after the last one ended; %d of %d pods created meanwhile had started, and were counted",
		crowded, gap.Seconds(), unpaced, made)
}

// inGap counts the pods that were created while no daemon ran and that this daemon knows.
func inGap(pods []admin.Pod) (n int) {
	for _, p := range pods {
		if strings.HasPrefix(p.Name, "gap-") {
			n++
		}
	}
	return n
}
