package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab/keeper"
)

// RuntimeOptions are the options of a containerd.
type RuntimeOptions struct {
	// Binaries is what BuildRuntime or Build returned.
	Binaries Binaries
	// Parent is the folder for the run's folder. Empty: the system's folder for temporary files.
	Parent string
	// Images are tar files to import in addition to the pause and herd images.
	Images []string
	// ContainerdConfig is TOML (version 2) appended to containerd's configuration.
	ContainerdConfig string
}

// Runtime is a throw-away containerd with CRI, NRI and a pod network. It is safe for concurrent
// use.
type Runtime struct {
	Run
	// Socket is containerd's socket, which serves CRI, too.
	Socket string
	// NRISocket is where NRI plugins connect.
	NRISocket string
	// CgroupParent is the parent of pods' cgroups (LinuxPodSandboxConfig.CgroupParent).
	CgroupParent string
	// Containerd is the daemon.
	Containerd *Service

	binaries Binaries
	keeper   *keeper.Keeper
	conn     *grpc.ClientConn
}

// StartRuntime starts a containerd and waits until it serves CRI with its
// network ready and all images imported. The caller must call Stop.
func StartRuntime(ctx context.Context, o RuntimeOptions) (*Runtime, error) {
	r, err := launch(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := r.start(ctx, o); err != nil {
		return nil, errors.Join(err, r.Stop(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// launch creates a run without starting its services.
func launch(ctx context.Context, o RuntimeOptions) (*Runtime, error) {
	if err := Preflight(); err != nil {
		return nil, err
	}
	if _, err := Sweep(ctx, o.Parent); err != nil {
		return nil, err
	}
	k, err := keeper.Launch(ctx, runParent(o.Parent))
	if err != nil {
		return nil, err
	}
	return &Runtime{
		Run: k.Run, keeper: k, binaries: o.Binaries,
		Socket:       filepath.Join(k.Run.Dir, "containerd.sock"),
		NRISocket:    filepath.Join(k.Run.Dir, "nri.sock"),
		CgroupParent: k.Run.Cgroup + "/pods",
	}, nil
}

func (r *Runtime) start(ctx context.Context, o RuntimeOptions) error {
	config, err := writeRuntimeConfig(r, o.Binaries, o.ContainerdConfig)
	if err != nil {
		return err
	}
	r.conn, err = grpc.NewClient("unix://"+r.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to containerd: %w", err)
	}
	r.Containerd = newService(r.keeper, ServiceSpec{
		Name:  "containerd",
		Args:  []string{o.Binaries.Containerd, "--config", config},
		Env:   []string{"PATH=" + filepath.Dir(o.Binaries.Shim) + ":" + os.Getenv("PATH")},
		Ready: r.ready,
	})
	if err := r.Containerd.Start(ctx); err != nil {
		return err
	}
	for _, image := range append([]string{o.Binaries.PauseImage, o.Binaries.HerdImage}, o.Images...) {
		if _, err := r.CTR(ctx, "images", "import", "--local", image); err != nil {
			return fmt.Errorf("importing image %s: %w", image, err)
		}
	}
	return r.Containerd.await(ctx, "the images to be known to CRI", r.imagesKnown)
}

// ready asks containerd whether runtime and network are ready.
func (r *Runtime) ready(ctx context.Context) error {
	reply, err := r.CRI().Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return err
	}
	for _, c := range reply.GetStatus().GetConditions() {
		// There are other conditions, for example one that is false while containerd warns about
		// deprecated settings.
		needed := c.GetType() == runtimeapi.RuntimeReady || c.GetType() == runtimeapi.NetworkReady
		if needed && !c.GetStatus() {
			return fmt.Errorf("%s is false: %s %s", c.GetType(), c.GetReason(), c.GetMessage())
		}
	}
	return nil
}

// imagesKnown returns nil once CRI lists the images.
func (r *Runtime) imagesKnown(ctx context.Context) error {
	for _, image := range []string{PauseImage, HerdImage} {
		reply, err := r.Images().ImageStatus(ctx, &runtimeapi.ImageStatusRequest{
			Image: &runtimeapi.ImageSpec{Image: image},
		})
		if err != nil {
			return err
		}
		if reply.GetImage() == nil {
			return fmt.Errorf("image %s is not there yet", image)
		}
	}
	return nil
}

// CRI returns a client of CRI's runtime service.
func (r *Runtime) CRI() runtimeapi.RuntimeServiceClient {
	return runtimeapi.NewRuntimeServiceClient(r.conn)
}

// Images returns a client of CRI's image service.
func (r *Runtime) Images() runtimeapi.ImageServiceClient {
	return runtimeapi.NewImageServiceClient(r.conn)
}

// CTR runs ctr in the namespace of CRI and returns its output.
func (r *Runtime) CTR(ctx context.Context, args ...string) ([]byte, error) {
	all := append([]string{"--address", r.Socket, "--namespace", "k8s.io"}, args...)
	cmd := exec.CommandContext(ctx, r.binaries.CTR, all...)
	// ctr must not outlive its run either.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("ctr %v: %w\n%s", args, err, out)
	}
	return out, nil
}

// StartService starts a process of the run. It ends with the run, and its output goes to a log file
// with its name.
func (r *Runtime) StartService(ctx context.Context, spec ServiceSpec) (*Service, error) {
	s := newService(r.keeper, spec)
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.end(ctx))
	}
	return s, nil
}

// Forward opens a port on the host's 127.0.0.1 that leads to a TCP address
// inside the run's network, for instance a pod's.
func (r *Runtime) Forward(ctx context.Context, inside string) (outside string, err error) {
	return r.keeper.Forward(ctx, inside)
}

// Stop takes the whole run down. Its error says what it could not remove. It kills all processes: a
// killed run needs nothing more.
func (r *Runtime) Stop(ctx context.Context) error {
	var err error
	if r.conn != nil {
		err = r.conn.Close()
	}
	return errors.Join(r.keeper.Stop(ctx), err)
}
