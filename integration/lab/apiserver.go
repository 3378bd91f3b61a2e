package lab

import (
	"context"
	"errors"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
)

// APIServer is an API server with its etcd. No controller acts on its objects, and it has no node.
// It is safe for concurrent use.
type APIServer struct{ cluster *Cluster }

// StartAPIServer builds missing programs, starts etcd and kube-apiserver, and waits until the API
// server serves. The caller must call Stop.
func StartAPIServer(ctx context.Context, progress build.Progress) (*APIServer, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	binaries, err := BuildControlPlane(ctx, cache, progress)
	if err != nil {
		return nil, err
	}
	r, err := launch(ctx, RuntimeOptions{Binaries: binaries})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Runtime: r, NodeName: DefaultNodeName}
	if err := c.startAPIServer(ctx); err != nil {
		return nil, errors.Join(err, r.Stop(context.WithoutCancel(ctx)))
	}
	return &APIServer{cluster: c}, nil
}

// RESTConfig returns a copy of the administrator's access.
func (s *APIServer) RESTConfig() *rest.Config { return s.cluster.RESTConfig() }

// Client is a client with the administrator's access.
func (s *APIServer) Client() kubernetes.Interface { return s.cluster.Client() }

// Kubectl is Cluster.Kubectl.
func (s *APIServer) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return s.cluster.Kubectl(ctx, args...)
}

// Run returns the run of both programs.
func (s *APIServer) Run() Run { return s.cluster.Run }

// StartService is Runtime.StartService.
func (s *APIServer) StartService(ctx context.Context, spec ServiceSpec) (*Service, error) {
	return s.cluster.StartService(ctx, spec)
}

// Forward is Runtime.Forward.
func (s *APIServer) Forward(ctx context.Context, inside string) (outside string, err error) {
	return s.cluster.Forward(ctx, inside)
}

// KubeletToken returns the token of the kubelet of the node DefaultNodeName.
func (s *APIServer) KubeletToken() string {
	return s.cluster.creds.tokens[kubeletUser(s.cluster.NodeName).name]
}

// Access returns a self-contained kubeconfig, with which the bearer of a token reaches the API
// server from inside the run's network.
func (s *APIServer) Access(token string) ([]byte, error) {
	authority, err := os.ReadFile(s.cluster.creds.path("apiserver.crt"))
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: "https://" + insideAddress, CertificateAuthorityData: authority}
	config.AuthInfos["bearer"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "bearer"}
	config.CurrentContext = "lab"
	return clientcmd.Write(*config)
}

// Stop takes both programs down. Its error says what it could not remove.
func (s *APIServer) Stop(ctx context.Context) error { return s.cluster.Stop(ctx) }
