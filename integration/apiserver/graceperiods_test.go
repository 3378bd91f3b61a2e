//go:build e2e

package apiserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
)

// The sample policy refuses pods and probes with a long grace period, and no others.
func TestGracePeriodsAreBoundedByTheSample(t *testing.T) {
	out, err := server.Kubectl(t.Context(), "apply", "-f", chart.Repository("deploy", "samples", "admission", "grace-periods.yaml"))
	require.NoError(t, err, "%s", out)
	client, err := kubernetes.NewForConfig(access)
	require.NoError(t, err)
	_, err = client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		t.Logf("service account: %v", err) // another test may have made it
	}
	creates := func(grace int64, change func(*corev1.Container)) error {
		c := corev1.Container{Name: "app", Image: "app"}
		change(&c)
		_, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "grace-"},
			Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{c}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	none := func(*corev1.Container) {}
	probe := func(grace int64) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, TerminationGracePeriodSeconds: &grace}
	}
	// The API server needs a moment before it applies a policy.
	require.Eventually(t, func() bool { return creates(301, none) != nil }, time.Minute, 100*time.Millisecond)
	require.ErrorContains(t, creates(1<<30, none), "terminationGracePeriodSeconds may be at most 300")
	for name, set := range map[string]func(c *corev1.Container, p *corev1.Probe){
		"liveness": func(c *corev1.Container, p *corev1.Probe) { c.LivenessProbe = p },
		"startup":  func(c *corev1.Container, p *corev1.Probe) { c.StartupProbe = p },
	} {
		require.ErrorContains(t, creates(30, func(c *corev1.Container) { set(c, probe(1<<30)) }), "of a probe may be at most 300", name)
		require.NoError(t, creates(300, func(c *corev1.Container) { set(c, probe(300)) }), name)
	}
	assert.NoError(t, creates(30, none))
}
