package preflight

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
)

// inAPI is what the API server says.
type inAPI struct {
	findings []Finding
	runtime  string // of this node, like containerd://2.4.2; empty if unknown
	// config is the PacemakerConfig that the daemon puts in force; nil if none selects this node. It is known only if
	// configKnown.
	config      *v1alpha1.PacemakerConfig
	configKnown bool
}

// askAPI asks the API server.
func askAPI(ctx context.Context, o plugin.Options) (says inAPI) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	add := func(found ...Finding) { says.findings = append(says.findings, found...) }
	client, err := connect(o)
	if err != nil {
		add(fault("api", err.Error(), "name a kubeconfig that can be read by --kubeconfig; in a pod, mount the token of its service account"))
		return says
	}
	configs, err := client.Resource(v1alpha1.Resource).List(ctx, metav1.ListOptions{})
	listed := err == nil
	switch {
	case listed, apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		add(ok("api", "the API server answers"))
	case apierrors.IsUnauthorized(err):
		add(fault("api", "the API server does not accept the credentials: "+err.Error(), "name a kubeconfig with valid ones by --kubeconfig; in a pod, look at the token of its service account"))
		return says
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		add(fault("api", "the API server answers with an error: "+err.Error(), "try again when it is well"))
		return says
	default:
		add(fault("api", "the API server does not answer: "+err.Error(), "check that this node reaches it; the chart's apiServer.host sets its address"))
		return says
	}
	switch {
	case listed:
		add(ok("crds", "they are installed"))
	case apierrors.IsNotFound(err): // else it is one of the missing rights
		add(fault("crds", "the API server does not know PacemakerConfigs", "kubectl apply -k deploy/crds"))
	}
	node, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Get(ctx, o.NodeName, metav1.GetOptions{})
	if err == nil {
		says.runtime, _, _ = unstructured.NestedString(node.Object, "status", "nodeInfo", "containerRuntimeVersion")
	} else if apierrors.IsNotFound(err) {
		add(fault("node", err.Error(), "set --node-name to the name of the Node object"))
	}
	var inForce []*v1alpha1.StartPolicy
	if says.configKnown = listed && err == nil; says.configKnown {
		says.config = crd.Choose(configs.Items, o.Instance, node.GetLabels())
		if policies, err := client.Resource(v1alpha1.PolicyResource).List(ctx, metav1.ListOptions{}); err == nil { // else it is one of the missing rights
			inForce = crd.ChoosePolicies(policies.Items, o.Instance, node.GetLabels())
		}
	}
	add(askRights(ctx, client, o, inForce)...)
	add(daemonSetsFinding(ctx, client, o.NodeName, says.config)...)
	return says
}

func connect(o plugin.Options) (dynamic.Interface, error) {
	access, err := kube.Access(o.Kubeconfig, "pod-pacemaker/"+o.Version)
	if err != nil {
		return nil, err
	}
	access.QPS, access.Burst = 50, 50 // one request for each verb of each right
	return dynamic.NewForConfig(access)
}
