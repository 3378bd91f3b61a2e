package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
)

const (
	namespace     = "default"
	containerName = "herd"
	// podPort is where a ready pod answers HTTP, in its own network.
	podPort = 8080
	// uidLabel is the label that names the pod of a sandbox.
	uidLabel = "io.kubernetes.pod.uid"
)

// criNode runs pods in containers of the lab's containerd.
type criNode struct {
	runtime *lab.Runtime
	herd    Herd
	bin     binaries
}

type criPod struct {
	node    *criNode
	config  *runtimeapi.PodSandboxConfig
	sandbox string
}

type criContainer struct {
	node *criNode
	pod  *criPod
	id   string
	log  string
}

func (n *criNode) close(ctx context.Context) error { return n.runtime.Stop(ctx) }

func (n *criNode) runPod(ctx context.Context, name, uid string, attempt int) (pod, error) {
	if attempt > 0 {
		// containerd may keep a refused sandbox, not ready, until it is removed.
		if err := n.removeAll(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{uidLabel: uid}}); err != nil {
			return nil, err
		}
	}
	config := n.runtime.SandboxConfig(namespace, name, uid)
	config.Metadata.Attempt = uint32(attempt)
	config.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
	reply, err := n.runtime.CRI().RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		return nil, fmt.Errorf("running its sandbox: %w", err)
	}
	return &criPod{node: n, config: config, sandbox: reply.GetPodSandboxId()}, nil
}

func (p *criPod) create(ctx context.Context, attempt int) (container, error) {
	log := fmt.Sprintf("%s-%d.log", containerName, attempt)
	labels := map[string]string{"io.kubernetes.container.name": containerName}
	maps.Copy(labels, p.config.GetLabels())
	reply, err := p.node.runtime.CRI().CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: p.sandbox, SandboxConfig: p.config,
		Config: &runtimeapi.ContainerConfig{
			Metadata:    &runtimeapi.ContainerMetadata{Name: containerName, Attempt: uint32(attempt)},
			Image:       &runtimeapi.ImageSpec{Image: lab.HerdImage},
			Args:        p.node.herd.arguments(podPort),
			Labels:      labels,
			Annotations: map[string]string{"io.kubernetes.container.restartCount": strconv.Itoa(attempt)},
			LogPath:     log,
			Linux: &runtimeapi.LinuxContainerConfig{
				Resources: &runtimeapi.LinuxContainerResources{CpusetCpus: p.node.herd.cpuset()},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("creating its container: %w", err)
	}
	return &criContainer{
		node: p.node, pod: p, id: reply.GetContainerId(), log: filepath.Join(p.config.GetLogDirectory(), log),
	}, nil
}

func (c *criContainer) start(ctx context.Context) error {
	_, err := c.node.runtime.CRI().StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: c.id})
	return err
}

func (c *criContainer) stop(ctx context.Context) error {
	_, err := c.node.runtime.CRI().StopContainer(ctx, &runtimeapi.StopContainerRequest{
		ContainerId: c.id, Timeout: int64(stopGrace.Seconds()),
	})
	if err != nil {
		return fmt.Errorf("stopping its container: %w", err)
	}
	return nil
}

func (c *criContainer) exited(ctx context.Context) (time.Time, bool, error) {
	reply, err := c.node.runtime.CRI().ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.id})
	if err != nil {
		return time.Time{}, false, fmt.Errorf("asking for its container's status: %w", err)
	}
	status := reply.GetStatus()
	if status.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		return time.Time{}, false, nil
	}
	return time.Unix(0, status.GetFinishedAt()), true, nil
}

func (c *criContainer) output() (string, error) {
	text, err := os.ReadFile(c.log)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

func (c *criContainer) cpu() time.Duration {
	path := filepath.Join(c.pod.config.GetLinux().GetCgroupParent(), c.id)
	used, err := cgroup.Reader{Root: "/sys/fs/cgroup"}.CPUSeconds(path)
	if err != nil {
		return 0 // the process has just ended
	}
	return time.Duration(used * float64(time.Second))
}

// startDaemon runs the daemon as a process of the lab's run.
func (n *criNode) startDaemon(ctx context.Context, limit int) (func(context.Context) error, error) {
	d, err := newDaemon(n.bin, filepath.Join(n.runtime.Dir, "pp"), n.runtime.NRISocket, limit)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	service, err := n.runtime.StartService(ctx, lab.ServiceSpec{
		Name: "pod-pacemaker", Args: d.args, HostNetwork: true, Ready: d.ready,
	})
	if err != nil {
		return nil, err
	}
	return service.Stop, nil
}
