package plugin

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
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
	var access *rest.Config
	var err error
	if o.Kubeconfig != "" {
		access, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	} else {
		access, err = rest.InClusterConfig()
	}
	if err != nil {
		return clients{}, fmt.Errorf("access to the API server: %w", err)
	}
	access.UserAgent = "pod-pacemaker/" + o.Version
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

var errNoCRD = errors.New("the API server does not know PacemakerConfigs: install the CRDs (kubectl apply -k deploy/crds)")

// AskAPIServer tells why the daemon with these options, which are not standalone, could
// not read PacemakerConfigs from the API server; nil: it can. It blocks until that has
// answered, or ctx ends.
func AskAPIServer(ctx context.Context, o Options) error {
	c, err := reachCluster(o)
	if err != nil {
		return err
	}
	_, err = c.dynamic.Resource(v1alpha1.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return errNoCRD
	}
	return err
}
