package plugin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// How many requests for Kubernetes' own kinds the daemon sends a second in the long run,
// and at once: as many as kubelet. Each start under a policy of the scope Cluster takes
// two, and each slot that is held one in about nine seconds; client-go's default of 5 a
// second would be too few for a node that starts many.
const (
	requestsPerSecond = 50
	requestsBurst     = 100
)

// clients are the ways to the API server.
type clients struct {
	kube    kube.Interface
	dynamic dynamic.Interface
}

// reachCluster makes the clients of the API server; it asks nothing yet.
func reachCluster(o Options) (clients, error) {
	access, err := kube.Access(o.Kubeconfig, "pod-pacemaker/"+o.Version)
	if err != nil {
		return clients{}, err
	}
	dyn, err := dynamic.NewForConfig(access)
	if err != nil {
		return clients{}, fmt.Errorf("client of the API server: %w", err)
	}
	access.QPS, access.Burst = requestsPerSecond, requestsBurst // Leases go this way
	// Custom resources are not served as protobuf; pods are, for half the CPU.
	access.ContentType = runtime.ContentTypeProtobuf
	own, err := kube.New(access)
	if err != nil {
		return clients{}, err
	}
	return clients{kube: own, dynamic: dyn}, nil
}
