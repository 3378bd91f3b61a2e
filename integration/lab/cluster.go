package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// DefaultNodeName is the default name of the node.
const DefaultNodeName = "lab"

// ClusterOptions are the options of a cluster.
type ClusterOptions struct {
	RuntimeOptions
	// NodeName is the node's name. Empty: DefaultNodeName.
	NodeName string
	// NodeLabels are added to the node's own.
	NodeLabels map[string]string
	// KubeletConfig, if set, makes the last changes to the kubelet's configuration.
	KubeletConfig func(config map[string]any)
}

// Cluster is a Kubernetes cluster of one node. It is safe for concurrent use.
type Cluster struct {
	*Runtime
	// Kubeconfig is the path of the administrator's kubeconfig for the host.
	Kubeconfig string
	// InnerKubeconfig is the administrator's kubeconfig for the inside of the run's network.
	InnerKubeconfig string
	// NodeName is the node's name.
	NodeName string
	// StaticPodDir is the folder where the kubelet looks for the manifests of static pods.
	StaticPodDir string
	// The parts of the cluster, beside Runtime.Containerd.
	Etcd, APIServer, ControllerManager, Scheduler, Kubelet *Service

	creds         *credentials
	access        *rest.Config
	client        kubernetes.Interface
	kubeletConfig func(config map[string]any)
}

// StartCluster starts etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, containerd and a kubelet, and waits until the node is ready.
// The caller must call Stop.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	r, err := StartRuntime(ctx, o.RuntimeOptions)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Runtime: r, NodeName: o.NodeName, kubeletConfig: o.KubeletConfig,
		StaticPodDir: filepath.Join(r.Dir, "static-pods"),
	}
	if c.NodeName == "" {
		c.NodeName = DefaultNodeName
	}
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o ClusterOptions) error {
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if err := c.startControllers(ctx); err != nil {
		return err
	}
	if err := c.startKubelet(ctx, o); err != nil {
		return err
	}
	if err := c.AwaitReady(ctx); err != nil {
		return err
	}
	return c.Kubelet.await(ctx, "the default service account", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// AwaitReady waits until the node is ready and has no taints.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	return c.Kubelet.await(ctx, "the node to be ready", c.nodeReady)
}

// connect creates the host's clients of the API server.
func (c *Cluster) connect() (err error) {
	if c.access, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	// The lab makes few calls, and a client-side rate limit would distort its measurements.
	c.access.QPS, c.access.Burst = 1000, 1000
	c.client, err = kubernetes.NewForConfig(c.access)
	return err
}

func (c *Cluster) nodeReady(ctx context.Context) error {
	node, err := c.client.CoreV1().Nodes().Get(ctx, c.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
			return fmt.Errorf("node is not ready: %s", cond.Message)
		}
	}
	if len(node.Status.Conditions) == 0 || len(node.Spec.Taints) > 0 {
		return errors.New("node is not ready: it has no conditions, or taints")
	}
	return nil
}

// RESTConfig returns a copy of the administrator's access from the host.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.access) }

// Client is a client with the administrator's access.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// KubectlPath is the path of the program kubectl.
func (c *Cluster) KubectlPath() string { return c.binaries.Kubectl }

// Kubectl runs kubectl as the administrator and returns its output, which the error contains as
// well.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.binaries.Kubectl, args...)
	// kubectl's discovery cache stays in the run's folder.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+filepath.Join(c.Dir, "kubectl"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return out, nil
}

// containerdFactory is what the kubelet logs when its cAdvisor has found containerd.
const containerdFactory = "Registration of the containerd container factory successfully"

// cadvisorSeesContainerd checks the kubelet's log: a cAdvisor that has not found containerd would
// hide how a real node behaves.
func (c *Cluster) cadvisorSeesContainerd(context.Context) error {
	log, err := os.ReadFile(c.Kubelet.LogFile())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(strings.Split(string(log), "\n"), func(line string) bool {
		return strings.Contains(line, containerdFactory)
	}) {
		return fmt.Errorf("the kubelet's log does not say %q: its cAdvisor has no containerd side", containerdFactory)
	}
	return nil
}
