package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/images"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// The image on the cluster's node, by the chart's names for its parts.
const (
	imageRepository = "pod-pacemaker.local/pod-pacemaker"
	imageTag        = "lab"
)

// repository returns a path inside the repository.
func repository(parts ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file), "..", "..", ".."}, parts...)...)
}

// valuesFile returns the path of the chart's values for the cluster.
func valuesFile(a lab.Access) string { return filepath.Join(a.Run.Dir, "values.yaml") }

// herdFile returns the path of the quickstart's herd for the cluster.
func herdFile(a lab.Access) string { return filepath.Join(a.Run.Dir, "herd.yaml") }

// offer prepares the cluster's node for an installation of the chart. It imports the image, made of
// bin/, and writes the values that name the image and the lab's paths, and the quickstart's herd.
func (v *verbs) offer(ctx context.Context, a lab.Access) error {
	tar := filepath.Join(a.Run.Dir, "image.tar")
	if err := images.FromContainerfile(imageRepository+":"+imageTag, repository(), tar); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, a.CTR, "--address", a.Containerd, "--namespace", "k8s.io", "images", "import", "--local", tar).CombinedOutput()
	if err != nil {
		return fmt.Errorf("give the image to the node: %w\n%s", err, out)
	}
	herd, err := images.QuickstartHerd(repository())
	if err != nil {
		return err
	}
	if err := os.WriteFile(herdFile(a), herd, 0o600); err != nil {
		return err
	}
	dir := filepath.Join(a.Run.Dir, "daemon")
	values, err := yaml.Marshal(map[string]any{
		"image":         map[string]any{"repository": imageRepository, "tag": imageTag, "pullPolicy": "Never"},
		"nri":           map[string]any{"socket": a.NRI},
		"containerd":    map[string]any{"state": filepath.Join(a.Run.Dir, "containerd", "state")},
		"kubeletConfig": []string{filepath.Join(a.Run.Dir, "kubelet", "config.yaml")},
		"waitingRoom":   map[string]any{"confDir": filepath.Join(a.Run.Dir, "cni"), "binDir": filepath.Join(a.Run.Dir, "cni-bin")},
		"paths":         map[string]any{"gate": dir + "/bin", "run": dir + "/run", "state": dir + "/state"},
		"apiServer":     map[string]any{"host": lab.NodeIP, "port": "6443"},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(valuesFile(a), values, 0o600)
}

// helm returns the folder of helm, which it builds if the cache does not hold it.
func (v *verbs) helm(ctx context.Context) (string, error) {
	cache, err := lab.CacheDir()
	if err != nil {
		return "", err
	}
	component, err := build.Find("helm")
	if err != nil {
		return "", err
	}
	return build.Cache{Dir: cache, Progress: build.PlainProgress(v.err)}.Component(ctx, component)
}

// built reports whether `make build` has left the programs.
func built() bool {
	_, err := os.Stat(repository("bin", "pod-pacemaker"))
	return !errors.Is(err, fs.ErrNotExist)
}
