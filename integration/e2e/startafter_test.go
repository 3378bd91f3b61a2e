//go:build e2e && full

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A DaemonSet that never becomes ready holds pods for its timeout, which they can read in status and why, and one event
// on the node says why they start then.
func TestStartAfterEndsAtItsTimeout(t *testing.T) {
	const bound = 15 * time.Second
	d := startDaemon(t)
	infra, ns, never := namespace(t), namespace(t), newLatch(t)
	daemonSet(t, infra, "agent", herdPod(0, never.holds))
	eventually(t, "the agent has begun", func() bool { return len(begun(t, infra)) == 1 })
	began := time.Now()
	agent := infra + "/agent"
	d.configure(t, fmt.Sprintf("{startAfter: [{daemonSet: %s, timeout: %s}], exemptions: {daemonSets: {namespaces: ['*']}}}", agent, bound))
	for _, name := range []string{"a", "b", "c"} {
		createPod(t, ns, name, herdPod(0.1))
	}
	eventually(t, "the pods wait", func() bool { return len(d.status(t).Waiting) == 3 })
	require.Contains(t, d.why(t, ns, "a"), "StartAfter: "+agent+" is not ready")
	require.Equal(t, "Waiting", d.status(t).StartAfter[0].State)
	require.InDelta(t, 1, d.metric(t, fmt.Sprintf(`pod_pacemaker_start_after{for=%q,state="Waiting"}`, agent)), 0)
	require.Empty(t, begun(t, ns))

	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 3) })
	all := lives(t, ns)
	logLives(t, began, all)
	for _, l := range all {
		assert.GreaterOrEqual(t, l.started.Sub(began), bound-100*time.Millisecond, l.pod.Name)
	}
	assertUnharmed(t, all)
	var says []string
	eventually(t, "an event on the node says why", func() bool {
		says = timedOut(t, agent)
		return len(says) > 0
	})
	assert.Equal(t, []string{agent + " is not ready after 15s: pods start without it"}, says)
}

// timedOut returns the events on the node that say that pods start without these.
func timedOut(t *testing.T, of string) (says []string) {
	t.Helper()
	list, err := node.Client().CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,reason=StartAfterTimedOut"})
	require.NoError(t, err)
	for _, e := range list.Items {
		if strings.HasPrefix(e.Message, of) {
			says = append(says, e.Message)
		}
	}
	return says
}

// withMark makes the pod do something with a file of a latch's folder, by a flag of the herd's program.
func (l latch) withMark(flag string) shape {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "mark", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: l.dir},
		}})
		c := &spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "mark", MountPath: latchPath})
		c.Args = append(c.Args, flag, latchPath+"/"+latchFile)
	}
}
