package lab

import (
	"context"
	"errors"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
)

// APIServer is an API server with its etcd, and nothing else: no controller acts on
// its objects, and it has no node. It is safe for concurrent use.
type APIServer struct{ cluster *Cluster }

// StartAPIServer builds what is missing in the cache, starts etcd and
// kube-apiserver, and waits until it serves. The caller must call Stop.
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

// RESTConfig is the administrator's access; the caller's own copy.
func (s *APIServer) RESTConfig() *rest.Config { return s.cluster.RESTConfig() }

// Client is a client with the administrator's access.
func (s *APIServer) Client() kubernetes.Interface { return s.cluster.Client() }

// Kubectl is Cluster.Kubectl.
func (s *APIServer) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return s.cluster.Kubectl(ctx, args...)
}

// Stop takes both down and returns what it could not remove.
func (s *APIServer) Stop(ctx context.Context) error { return s.cluster.Stop(ctx) }
