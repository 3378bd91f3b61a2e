//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// databasePort is where the database listens, on the node.
const databasePort = 18081

// database is a pod that others need; it is on the node's network, where they find it.
func database(spec *corev1.PodSpec) {
	spec.HostNetwork = true
	c := &spec.Containers[0]
	c.Args = append(c.Args, "--port", fmt.Sprint(databasePort))
	c.ReadinessProbe.HTTPGet.Port = intstr.FromInt32(databasePort)
}

// needsDatabase makes a pod that gets ready only when the database listens. kubelet
// executes a probe in it every second, as many images have it.
func needsDatabase(spec *corev1.PodSpec) {
	c := &spec.Containers[0]
	c.Env = append(c.Env,
		corev1.EnvVar{Name: "HOST", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}},
		corev1.EnvVar{Name: "HERD_WAIT_FOR", Value: fmt.Sprintf("$(HOST):%d", databasePort)},
	)
	c.LivenessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
		Command: []string{"/herd", "--cpu-seconds", "0", "--wait-for", "", "--done"},
	}}}
}

// The example of the throttling study: a database, and pods that need it before they
// are ready, of which the first in line take all slots.
func TestDeadlockOfTwoAndADatabase(t *testing.T) {
	deadlock(t, 2, func(t *testing.T, ns string) {
		eventually(t, "those that need it run", func() bool { return runningIn(t, ns, "needs-") == 2 })
		figure(t, "a pod that waits for the database, with a probe executed every second, used %.1f %% of a core", 100*coresOf(t, ns, 4*time.Second))
	})
}

// deadlock starts so many pods that need the database, then the database, two at a
// time, and waits until all of them are ready.
func deadlock(t *testing.T, dependants int32, meanwhile func(t *testing.T, ns string)) {
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "needs", dependants, herdPod(0.1, needsDatabase))
	eventually(t, "all that need the database wait or start", func() bool {
		s := d.status(t)
		return len(s.Waiting)+len(s.Starting) == int(dependants)
	})
	asked := newLatch(t) // or the database may have been started before anybody could ask why
	createPod(t, ns, "database", herdPod(0.5, database, asked.holds))
	meanwhile(t, ns)
	said := map[string]string{} // by the reason of the admission
	eventually(t, "all pods are ready", func() bool {
		for _, pod := range d.status(t).Starting {
			if _, heard := said[string(pod.Admission)]; !heard && pod.Namespace == ns {
				said[string(pod.Admission)] = d.why(t, ns, pod.Name)
			}
		}
		if said[string(throttle.SlotLent)] != "" {
			asked.release(t)
		}
		return allReady(t, ns, int(dependants)+1)
	})
	took := lastReady(lives(t, ns)).Sub(begin)
	figure(t, "%d pods that need a database, and the database behind them: all ready after %.1f s", dependants, took.Seconds())
	for _, pod := range pods(t, ns) {
		assert.Zero(t, restarts(pod), "restarts of %s", pod.Name)
	}
	d.idle(t)
	d.assertLent(t, ns, said[string(throttle.SlotLent)])
}

// assertLent checks that every way in which the daemon tells of starts tells of a slot
// that was lent.
func (d *daemon) assertLent(t *testing.T, ns, why string) {
	t.Helper()
	assert.Contains(t, why, string(throttle.SlotLent))
	assert.Contains(t, why, "lent a slot: all others that hold one make no progress")
	assert.Positive(t, d.metric(t, `pod_pacemaker_admissions_total{reason="SlotLent"}`))
	log, err := os.ReadFile(d.LogFile())
	require.NoError(t, err)
	assert.Regexp(t, `msg="start admitted".* reason=SlotLent`, string(log))
	eventually(t, "an event says that a slot was lent", func() bool {
		events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + string(throttle.SlotLent)})
		require.NoError(t, err)
		return len(events.Items) > 0 && strings.Contains(events.Items[0].Message, "make no progress")
	})
}

// coresOf gives how many CPUs the pods of a namespace that run use at the mean.
func coresOf(t *testing.T, ns string, over time.Duration) float64 {
	t.Helper()
	reply, err := node.CRI().ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.namespace": ns, "app": "needs"},
	}})
	require.NoError(t, err)
	require.NotEmpty(t, reply.Items)
	used := func() (sum float64) {
		for _, sandbox := range reply.Items {
			seconds, err := cgroup.Reader{Root: "/sys/fs/cgroup"}.CPUSeconds(cgroupParent(t, sandbox.Id))
			require.NoError(t, err)
			sum += seconds
		}
		return sum
	}
	begin, before := time.Now(), used()
	after(t.Context(), over)
	return (used() - before) / time.Since(begin).Seconds() / float64(len(reply.Items))
}

// cgroupParent gives the cgroup of the pod that a sandbox is of.
func cgroupParent(t *testing.T, sandbox string) string {
	t.Helper()
	reply, err := node.CRI().PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox, Verbose: true})
	require.NoError(t, err)
	var info struct {
		Config struct {
			Linux struct {
				CgroupParent string `json:"cgroup_parent"`
			} `json:"linux"`
		} `json:"config"`
	}
	require.NoError(t, json.Unmarshal([]byte(reply.Info["info"]), &info))
	return info.Config.Linux.CgroupParent
}
