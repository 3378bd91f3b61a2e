//go:build vm

package vm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// configure makes the daemon follow another PacemakerConfig until the test ends.
func configure(t *testing.T, spec string) {
	t.Helper()
	const file = "/etc/pod-pacemaker/scenario.yaml"
	text := "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: scenario}\nspec: " + spec
	require.NoError(t, guest.Write(t.Context(), file, text))
	// If a flag occurs twice, the last one counts.
	arguments(t, access+" --config="+file)
	require.Equal(t, "scenario", status(t).Config.Name)
}

// assertMeasured checks that the daemon could read what pods use.
func assertMeasured(t *testing.T) {
	t.Helper()
	assert.NotContains(t, sh(t, "journalctl -b --no-pager -u pod-pacemaker"), "cannot read what pod")
}

// Two starts that wait in vain hold both slots and use neither CPU nor disk, by their cgroups'
// files: a slot is lent to the pod that they wait for.
func TestSlotsAreLentByCgroups(t *testing.T) {
	configure(t, "{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 10s}}")
	latch := strings.TrimSpace(sh(t, "mktemp -d /var/tmp/latch-XXXXXX"))
	t.Cleanup(func() { sh(t, "touch %s/released", latch) })
	createPods(t, "idle", 2, herdPod(0.1, latched(latch)))
	eventually(t, "both slots are taken", func() bool { return len(status(t).Starting) == 2 })
	createPods(t, "next", 1, herdPod(0.1))
	eventually(t, "the next pod is ready", func() bool { return ready(t, "next") == 1 })
	admittedFor(t, reasons.SlotLent, "next-")
	assert.Zero(t, ready(t, "idle"))
	if sh(t, "stat -f -c %%T /sys/fs/cgroup") == "cgroup2fs" {
		slice := sh(t, "dirname /sys/fs/cgroup$(cut -d: -f3 /proc/$(pgrep -x herd | head -n 1)/cgroup)")
		for _, file := range []string{"io.stat", "cpu.stat", "cpu.pressure"} {
			sh(t, "cat %s/%s", slice, file) // the pod's own files
		}
	}
	assertMeasured(t)
	sh(t, "touch %s/released", latch)
	eventually(t, "the first two are ready, too", func() bool { return ready(t, "idle") == 2 })
}

// Without an API server, the daemon sees from the pods' cgroups that they have started.
func TestStandaloneSigns(t *testing.T) {
	const herd, limit = 3, 1
	require.NoError(t, guest.Write(t.Context(), "/etc/pod-pacemaker/scenario.yaml",
		"apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: alone}\nspec: {throttleConfig: {maxConcurrent: {value: 1}}}"))
	arguments(t, "--gate=always --log-level=debug --config=/etc/pod-pacemaker/scenario.yaml")
	begin := clock(t)
	createPods(t, "alone", herd, herdPod(2))
	eventually(t, "all pods have started", func() bool {
		n := 0
		for _, p := range status(t).Ended {
			if strings.HasPrefix(p.Name, "alone-") {
				n++
			}
		}
		return n == herd
	})
	for _, p := range status(t).Ended {
		if strings.HasPrefix(p.Name, "alone-") {
			assert.Equal(t, reasons.Inferred, p.Reason, p.Name)
		}
	}
	eventually(t, "all pods are ready", func() bool { return ready(t, "alone") == herd })
	assertPaced(t, "alone", begin, herd, limit)
	assertMeasured(t)
}

// Pods that their own CPU limit throttles all the time are under CPU pressure, and so is the node
// by the kernel's count, but the limit by CPU pressure stays open.
func TestAThrottledPodClosesNoPressureLimit(t *testing.T) {
	createPods(t, "throttled", 2, herdPod(0, withoutProbes, args("--cpu-seconds", "100000"), func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}
	}))
	eventually(t, "the throttled pods run", func() bool { return len(strings.Fields(sh(t, "pgrep -x herd || true"))) == 2 })
	configure(t, `{throttleConfig: {pressure: {cpu: {some: "20"}, window: 10s}}}`)
	eventually(t, "the kernel counts CPU pressure above the limit although the node is not busy, and no pod waits", func() bool {
		s := status(t)
		return signalOf(s, throttle.SignalCPUPressure) > 30 && signalOf(s, throttle.SignalCPU) < 60 && s.HeldBy == nil
	})
	createPods(t, "free", 1, herdPod(0.1))
	// The creation of a pod uses all of the slow guest for seconds. The limit may hold the pod back
	// meanwhile, but not for longer.
	eventually(t, "the next pod is ready", func() bool { return ready(t, "free") == 1 })
	admittedFor(t, reasons.WithinLimits, "free-")
}

// admittedFor checks why the only pod whose name begins like that was admitted.
func admittedFor(t *testing.T, why reasons.Reason, prefix string) {
	t.Helper()
	found := 0
	for _, p := range status(t).Ended {
		if strings.HasPrefix(p.Name, prefix) {
			found++
			figure(t, "%s waited %s, admitted: %s", p.Name, p.WaitedSeconds.Duration(), p.Admission)
			assert.Equal(t, why, p.Admission, "why %s was admitted", p.Name)
		}
	}
	assert.Equal(t, 1, found, "starts of %s that ended", prefix)
}

// signalOf returns the value of a signal, or 0 if it is not measured.
func signalOf(s admin.Status, which throttle.Signal) float64 {
	for _, signal := range s.Signals {
		if signal.Name == which.String() && signal.Value != nil {
			return *signal.Value
		}
	}
	return 0
}
