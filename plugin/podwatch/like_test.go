package podwatch

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ownedBy(kind, name string, labels map[string]string) func(*corev1.Pod) {
	yes := true
	return func(p *corev1.Pod) {
		p.Labels = labels
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owned           func(*corev1.Pod)
		owner, revision string
	}{
		"no owner":           {func(*corev1.Pod) {}, "", ""},
		"a Deployment":       {ownedBy("ReplicaSet", "web-7d4f", map[string]string{"pod-template-hash": "7d4f"}), "Deployment/web", "7d4f"},
		"a bare ReplicaSet":  {ownedBy("ReplicaSet", "web", nil), "ReplicaSet/web", ""},
		"a false hash":       {ownedBy("ReplicaSet", "web-1", map[string]string{"pod-template-hash": "7d4f"}), "ReplicaSet/web-1", ""},
		"a StatefulSet":      {ownedBy("StatefulSet", "db", map[string]string{"controller-revision-hash": "db-5c"}), "StatefulSet/db", "db-5c"},
		"a CronJob":          {ownedBy("Job", "backup-29012345", nil), "Job/backup", ""},
		"a Job":              {ownedBy("Job", "migrate-v2", nil), "Job/migrate-v2", ""},
		"the node":           {ownedBy("Node", "worker", nil), "", ""},
		"an endless name":    {ownedBy(strings.Repeat("k", 1<<20), "x", nil), "", ""},
		"a mark on a Gadget": {ownedBy("Gadget", "g", map[string]string{"pod-template-hash": "7d4f"}), "Gadget/g", ""},
	} {
		like := trim(webPod(c.owned)).Like
		assert.Equal(t, c.owner, like.Owner, name)
		assert.Equal(t, c.revision, like.Revision, name)
	}
}

func TestImagesStandForTheStartedProgram(t *testing.T) {
	t.Parallel()
	images := func(change func(c *corev1.Container)) string {
		return trim(webPod(func(p *corev1.Pod) { change(&p.Spec.Containers[0]) })).Like.Images
	}
	seen := map[string]bool{}
	for _, change := range []func(c *corev1.Container){
		func(*corev1.Container) {},
		func(c *corev1.Container) { c.Image = "web:1" },
		func(c *corev1.Container) { c.Image = "web:2" },
		func(c *corev1.Container) { c.Command = []string{"a", "b"} },
		func(c *corev1.Container) { c.Command, c.Args = []string{"a"}, []string{"b"} },
	} {
		key := images(change)
		assert.Len(t, key, 16)
		assert.Equal(t, key, images(change))
		seen[key] = true
	}
	assert.Len(t, seen, 5)
	assert.Equal(t, images(func(*corev1.Container) {}), images(func(c *corev1.Container) { c.Name = "other" }))
}

func TestCPULimitOfAPod(t *testing.T) {
	t.Parallel()
	limited := func(cpus ...string) int64 {
		return trim(webPod(func(p *corev1.Pod) {
			p.Spec.Containers = nil
			for _, cpu := range cpus {
				c := container("c" + cpu)
				if cpu != "" {
					c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
				}
				p.Spec.Containers = append(p.Spec.Containers, c)
			}
		})).Like.MilliCPU
	}
	assert.EqualValues(t, 1500, limited("500m", "1"))
	assert.Zero(t, limited("500m", ""))
	assert.Zero(t, limited("", "500m"))
}

func TestPatience(t *testing.T) {
	t.Parallel()
	probe := func(delay, failures, period int32) *corev1.Probe {
		return &corev1.Probe{InitialDelaySeconds: delay, FailureThreshold: failures, PeriodSeconds: period}
	}
	of := func(containers ...corev1.Container) time.Duration {
		return trim(webPod(func(p *corev1.Pod) { p.Spec.Containers = containers })).Patience
	}
	live, slow, ready := container("live"), container("slow"), container("ready")
	live.LivenessProbe = probe(7, 2, 10)
	slow.LivenessProbe, slow.StartupProbe = probe(0, 1, 1), probe(0, 30, 10)
	ready.ReadinessProbe = probe(0, 1, 1)
	assert.Equal(t, 17*time.Second, of(live), "the first probe fails after 7 s at the earliest, the second 10 s later")
	assert.Equal(t, 290*time.Second, of(slow), "the liveness probe starts after the startup probe")
	assert.Equal(t, 17*time.Second, of(slow, live, ready))
	live.LivenessProbe = probe(0, 1, 10)
	assert.Equal(t, time.Second, of(live), "zero would mean that no probe kills it")
	assert.Zero(t, of(ready), "a readiness probe does not kill")
}
