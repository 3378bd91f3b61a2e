package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/images"
)

// Names of the lab's images in the runtime. The images are imported at the start and cannot be
// pulled.
const (
	PauseImage = images.Pause
	HerdImage  = images.Herd
)

// Binaries are absolute paths of the built programs. A path is empty if its program was not built.
type Binaries struct {
	// Containerd, Shim, CTR and Runc are programs. containerd finds the shim in its own folder.
	Containerd, Shim, CTR, Runc string
	// CNIDir is the folder of the CNI plugins.
	CNIDir string
	// The control plane, the kubelet and kubectl.
	Etcd, APIServer, ControllerManager, Scheduler, Kubelet, Kubectl string
	apiServerArgs                                                   []string // beside the usual ones
	// PauseImage and HerdImage are tar files that ctr can import.
	PauseImage, HerdImage string
}

// CacheDir is the folder of built programs: $POD_PACEMAKER_CACHE, or pod-pacemaker in the user's
// cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("POD_PACEMAKER_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the build cache, set POD_PACEMAKER_CACHE: %w", err)
	}
	return filepath.Join(base, "pod-pacemaker"), nil
}

// Build builds everything that a cluster needs, unless the cache holds it. This takes minutes the
// first time. progress may be nil.
func Build(ctx context.Context, cacheDir string, progress build.Progress) (Binaries, error) {
	b, err := BuildRuntime(ctx, cacheDir, progress)
	if err != nil {
		return Binaries{}, err
	}
	controlPlane, err := BuildControlPlane(ctx, cacheDir, progress)
	if err != nil {
		return Binaries{}, err
	}
	b.Etcd, b.APIServer, b.ControllerManager = controlPlane.Etcd, controlPlane.APIServer, controlPlane.ControllerManager
	b.Scheduler, b.Kubelet, b.Kubectl = controlPlane.Scheduler, controlPlane.Kubelet, controlPlane.Kubectl
	return b, nil
}

// BuildControlPlane builds the programs for StartAPIServer: etcd and Kubernetes.
func BuildControlPlane(ctx context.Context, cacheDir string, progress build.Progress) (Binaries, error) {
	cache := build.Cache{Dir: cacheDir, Progress: progress}
	etcd, err := component(ctx, cache, "etcd")
	if err != nil {
		return Binaries{}, err
	}
	kubernetes, err := component(ctx, cache, "kubernetes")
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{Etcd: filepath.Join(etcd, "etcd")}
	b.UseKubernetes(kubernetes)
	return b, nil
}

// BuildRuntime builds the programs and images for StartRuntime: containerd, runc, the CNI plugins
// and the images.
func BuildRuntime(ctx context.Context, cacheDir string, progress build.Progress) (Binaries, error) {
	if err := preflightBuild(); err != nil {
		return Binaries{}, err
	}
	cache := build.Cache{Dir: cacheDir, Progress: progress}
	containerd, err := component(ctx, cache, "containerd")
	if err != nil {
		return Binaries{}, err
	}
	runc, err := component(ctx, cache, "runc")
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{Runc: filepath.Join(runc, "runc")}
	b.UseContainerd(containerd)
	if b.CNIDir, err = component(ctx, cache, "cni"); err != nil {
		return Binaries{}, err
	}
	if b.PauseImage, err = images.Build(ctx, cache, images.Pause); err != nil {
		return Binaries{}, err
	}
	if b.HerdImage, err = images.Build(ctx, cache, images.Herd); err != nil {
		return Binaries{}, err
	}
	return b, nil
}

// UseContainerd takes containerd, its shim and ctr from dir, for instance from the folder of
// another release (build.Cache.Component).
func (b *Binaries) UseContainerd(dir string) {
	b.Containerd = filepath.Join(dir, "containerd")
	b.Shim = filepath.Join(dir, "containerd-shim-runc-v2")
	b.CTR = filepath.Join(dir, "ctr")
}

// UseKubernetes takes Kubernetes' programs from dir, for instance from the folder of another release. The API server gets
// the arguments beside the usual ones.
func (b *Binaries) UseKubernetes(dir string, apiServer ...string) {
	b.APIServer, b.apiServerArgs = filepath.Join(dir, "kube-apiserver"), apiServer
	b.ControllerManager = filepath.Join(dir, "kube-controller-manager")
	b.Scheduler = filepath.Join(dir, "kube-scheduler")
	b.Kubelet = filepath.Join(dir, "kubelet")
	b.Kubectl = filepath.Join(dir, "kubectl")
}

func component(ctx context.Context, cache build.Cache, name string) (string, error) {
	c, err := build.Find(name)
	if err != nil {
		return "", err
	}
	return cache.Component(ctx, c)
}

// preflightBuild checks that the tools for the builds exist.
func preflightBuild() error {
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("%w: the builds need Go; put the go command into PATH (https://go.dev/dl): %w", ErrHost, err)
	}
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		return fmt.Errorf("%w: building runc needs a C compiler; install gcc (Debian: apt-get install gcc libc6-dev), or name one in CC: %w", ErrHost, err)
	}
	return nil
}
