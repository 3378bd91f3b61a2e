//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// prepare makes what the pods need: the limits, the StartPolicy, and another plugin.
func (c *chaos) prepare() {
	c.t.Helper()
	for _, p := range c.shape.Pods {
		if p.Rejected > 0 {
			c.rejected[c.spaces[p.Namespace]+"/"+p.Name] = p.Rejected
		}
	}
	c.configure(c.shape.Limits)
	c.discards("pacemakerconfig")
	eventually(c.t, "the config is in force", func() bool { return c.d.status(c.t).Config.Name == c.config })
	if c.shape.Running > 0 {
		c.apply(c.shape.StartPolicy())
		c.discards("startpolicy")
	}
	c.rejects()
}

// chaosClass is the priority class of a priority.
func chaosClass(priority int32) string {
	return strings.ReplaceAll(fmt.Sprintf("chaos-%d", priority), "--", "-below-")
}

// configure gives limits to the API server.
func (c *chaos) configure(l shapes.Limits) {
	c.t.Helper()
	if c.postpone(func() { c.configure(l) }) {
		return
	}
	c.inForce = append(c.inForce, limitsSince{time.Now(), l})
	c.apply(l.Object(1))
}

// apply gives an object to the API server, or changes it.
func (c *chaos) apply(u *unstructured.Unstructured) {
	c.t.Helper()
	u.SetName(c.config)
	unstructured.RemoveNestedField(u.Object, "metadata", "generation")
	text, err := json.Marshal(u)
	require.NoError(c.t, err)
	file := filepath.Join(c.t.TempDir(), "object.json")
	require.NoError(c.t, os.WriteFile(file, text, 0o600))
	kubectl(c.t, "apply", "-f", file)
}

// discards deletes an object of apply when the test ends.
func (c *chaos) discards(kind string) {
	c.t.Cleanup(func() {
		out, err := node.Kubectl(context.Background(), "delete", kind, c.config)
		assert.NoError(c.t, err, "%s", out)
	})
}

// rejects runs the plugin that rejects the first containers of some pods, until containerd ends.
func (c *chaos) rejects() {
	c.t.Helper()
	if len(c.rejected) == 0 {
		return
	}
	rejectsAny(c.t, func(pod *api.PodSandbox) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		name := pod.GetNamespace() + "/" + pod.GetName()
		c.rejected[name]--
		return c.rejected[name] >= 0
	})
}

// livesFolder is where the program of a pod counts how often it was started.
const livesFolder = "/lives"

// object returns a pod for the node: that of the shape, with programs that do what the shape says.
func (c *chaos) object(p *shapes.Pod) *corev1.Pod {
	pod := p.Object()
	pod.Namespace, pod.UID, pod.Status = c.spaces[p.Namespace], "", corev1.PodStatus{}
	spec := &pod.Spec
	spec.NodeName, spec.Priority = node.NodeName, nil
	if p.Priority != 0 {
		spec.PriorityClassName = chaosClass(p.Priority)
	}
	grace, off := int64(1), false
	spec.TerminationGracePeriodSeconds, spec.AutomountServiceAccountToken, spec.EnableServiceLinks = &grace, &off, &off
	spec.Volumes = []corev1.Volume{{Name: "lives", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for i := range spec.InitContainers {
		program(p, &spec.InitContainers[i], c.shape.Program(p.Object(), spec.InitContainers[i].Name, p.Fails()).Exits, 0, 0)
	}
	for i := range spec.Containers {
		program(p, &spec.Containers[i], p.Runs, p.Ready, 8080+i)
	}
	return pod
}

// program makes a container one that listens at a port once it is ready, and ends after a time, if that is not 0.
func program(p *shapes.Pod, container *corev1.Container, ends, ready time.Duration, port int) {
	container.Image, container.ImagePullPolicy = lab.HerdImage, corev1.PullNever
	container.Args = []string{"--cpu-seconds", "0", "--port", fmt.Sprint(port), "--sleep", ready.String(), "--ends", ends.String()}
	if p.Fails() > 0 && port > 0 {
		container.Args = append(container.Args, "--lives", filepath.Join(livesFolder, container.Name), "--crashes", fmt.Sprint(p.Crashes), "--hangs", fmt.Sprint(p.Hangs))
		container.VolumeMounts = []corev1.VolumeMount{{Name: "lives", MountPath: livesFolder}}
	}
	for _, of := range []*corev1.Probe{container.ReadinessProbe, container.StartupProbe, container.LivenessProbe} {
		if of != nil {
			*of = *probe(*of)
			of.HTTPGet.Port = intstr.FromInt(port)
		}
	}
}
