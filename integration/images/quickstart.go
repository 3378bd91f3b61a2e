package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// QuickstartHerd returns the manifest of the quickstart's herd, in the repository root, with the
// image Herd in place of one from a registry. Its pods use ten CPU-seconds before they are ready.
func QuickstartHerd(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "quickstart-herd.yaml"))
	if err != nil {
		return nil, fmt.Errorf("the quickstart's herd: %w", err)
	}
	var herd appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &herd); err != nil {
		return nil, fmt.Errorf("the quickstart's herd: %w", err)
	}
	containers := herd.Spec.Template.Spec.Containers
	if len(containers) != 1 || containers[0].ReadinessProbe == nil {
		return nil, errors.New("the quickstart's herd: expected one container with a readiness probe")
	}
	app := &containers[0]
	app.Image, app.ImagePullPolicy = Herd, corev1.PullNever
	app.Command, app.Args = nil, []string{"--cpu-seconds", "10"}
	app.ReadinessProbe.ProbeHandler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}
	manifest, err := yaml.Marshal(herd)
	if err != nil {
		return nil, fmt.Errorf("the quickstart's herd: %w", err)
	}
	return manifest, nil
}
