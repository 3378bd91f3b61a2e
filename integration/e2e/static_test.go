//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A static pod does not wait, takes the free slot, and gives it back when it is ready, although
// kubelet and the API server know it by different UIDs.
func TestStaticPodFreesItsSlot(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	static := "static-" + node.NodeName
	slow := newLatch(t)
	removeStatic := writeStatic(t, ns, herdPod(1, slow.holds))
	eventually(t, "the static pod holds the slot", func() bool {
		s := d.status(t)
		return len(s.Starting) == 1 && s.Starting[0].Name == static && s.Starting[0].Slot
	})
	begin := time.Now()
	deploy(t, ns, "other", 1, herdPod(0.1))
	eventually(t, "the other pod waits", func() bool { return len(d.status(t).Waiting) == 1 })
	slow.release(t)
	eventually(t, "both are ready", func() bool { return allReady(t, ns, 2) })
	d.idle(t)

	all := lives(t, ns)
	logLives(t, begin, all)
	require.Len(t, all, 2)
	assert.Equal(t, static, all[0].pod.Name, "the first to start")
	assert.Equal(t, 1, mostStarting(t, all), "pods between the start of their process and ready")
	ended := d.ended(t, ns)
	assert.Equal(t, reasons.Ready, ended[static].Reason)
	figure(t, "the static pod's slot ended %.2f s after kubelet found it ready", ended[static].Ended.Sub(all[0].ready).Seconds())
	removeStatic()
	eventually(t, "the static pod is gone", func() bool { return len(pods(t, ns)) == 1 })
}

// writeStatic gives kubelet the manifest of a static pod, until the test ends or remove is called.
func writeStatic(t *testing.T, namespace string, spec corev1.PodSpec) (remove func()) {
	t.Helper()
	spec.AutomountServiceAccountToken = nil
	data, err := yaml.Marshal(corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "static", Namespace: namespace},
		Spec:       spec,
	})
	require.NoError(t, err)
	file := filepath.Join(node.StaticPodDir, "static.yaml")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	remove = func() {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Errorf("static pod: %v", err)
		}
	}
	t.Cleanup(remove)
	return remove
}
