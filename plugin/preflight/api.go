package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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

// rights are the permissions that every daemon uses, for all namespaces or for the cluster. The level is that of the
// finding if one is missing.
var rights = []struct {
	group, resource, verbs string
	level                  Level
	without                string // what does not work then
}{
	{"", "pods", "get list watch", Fault, "the daemon does not know the probes, owner and priority of pods"},
	{"", "nodes", "get list watch", Fault, "no PacemakerConfig can be selected by the node's labels"},
	{"pod-pacemaker.io", "pacemakerconfigs", "get list watch", Fault, "only a PacemakerConfig from a file applies"},
	{"pod-pacemaker.io", "startpolicies", "get list watch", Fault, "StartPolicies hold no pod"},
	{"", "events", "create patch", Warning, "no event reports what a pod waits for"},
	{"pod-pacemaker.io", "pacemakernodes", "create", Warning, "kubectl get pacemakernodes does not show this node"},
	{"pod-pacemaker.io", "pacemakernodes/status", "patch", Warning, "kubectl get pacemakernodes does not show this node"},
}

// clock is a transport that compares this clock with that of the API server.
type clock struct {
	http.RoundTripper
	ahead *time.Duration // of this clock, after the last answer with a time; nil: there was none
}

// RoundTrip implements http.RoundTripper.
func (c *clock) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	reply, err := c.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if there, err := http.ParseTime(reply.Header.Get("Date")); err == nil { // in whole seconds
		c.ahead = new(began.Add(time.Since(began) / 2).Sub(there.Add(time.Second / 2)))
	}
	return reply, nil
}

// inAPI is what the API server says.
type inAPI struct {
	findings []Finding
	runtime  string // of this node, like containerd://2.4.2; empty if unknown
	// config is the PacemakerConfig that the daemon puts in force; nil if none selects this node. It is known only if
	// configKnown.
	config      *v1alpha1.PacemakerConfig
	configKnown bool
}

// askAPI asks the API server, and compares the clocks with c.
func askAPI(ctx context.Context, o plugin.Options, c *clock) (says inAPI) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	add := func(found ...Finding) { says.findings = append(says.findings, found...) }
	client, err := connect(o, c)
	var configs *unstructured.UnstructuredList
	if err == nil {
		configs, err = client.Resource(v1alpha1.Resource).List(ctx, metav1.ListOptions{})
	}
	if _, answered := errors.AsType[*apierrors.StatusError](err); err != nil && !answered {
		add(fault("api", "the API server does not answer: "+err.Error(), "check that this node reaches it; the chart's apiServer.host sets its address"))
		return says
	}
	add(ok("api", "the API server answers"))
	listed := err == nil
	switch {
	case listed:
		add(ok("crds", "they are installed"))
	case apierrors.IsNotFound(err):
		add(fault("crds", "the API server does not know PacemakerConfigs", "kubectl apply -k deploy/crds"))
	case !apierrors.IsForbidden(err): // then it is one of the missing rights
		add(fault("crds", err.Error(), "kubectl apply -k deploy/crds"))
	}
	node, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Get(ctx, o.NodeName, metav1.GetOptions{})
	if err == nil {
		says.runtime, _, _ = unstructured.NestedString(node.Object, "status", "nodeInfo", "containerRuntimeVersion")
	} else if apierrors.IsNotFound(err) {
		add(fault("node", err.Error(), "set --node-name to the name of the Node object"))
	}
	if says.configKnown = listed && err == nil; says.configKnown {
		says.config = crd.Choose(configs.Items, o.Instance, node.GetLabels())
	}
	add(askRights(ctx, client)...)
	return says
}

func connect(o plugin.Options, c *clock) (dynamic.Interface, error) {
	access, err := kube.Access(o.Kubeconfig, "pod-pacemaker/"+o.Version)
	if err != nil {
		return nil, err
	}
	access.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		c.RoundTripper = transport
		return c
	})
	return dynamic.NewForConfig(access)
}

// askRights returns a finding for each right that is missing in part, or one if none is.
func askRights(ctx context.Context, client dynamic.Interface) (denied []Finding) {
	for _, right := range rights {
		resource, sub, _ := strings.Cut(right.resource, "/")
		var missing []string
		for verb := range strings.FieldsSeq(right.verbs) {
			review, err := kube.Review(ctx, client, "authorization.k8s.io", "SelfSubjectAccessReview", map[string]any{
				"resourceAttributes": map[string]any{"group": right.group, "resource": resource, "subresource": sub, "verb": verb},
			})
			if err != nil {
				return append(denied, warning("rights", "the API server does not report them: "+err.Error(), "compare them with deploy/base/rbac.yaml"))
			}
			if review["allowed"] != true {
				missing = append(missing, verb)
			}
		}
		if len(missing) > 0 {
			denied = append(denied, Finding{
				"rights", right.level, fmt.Sprintf("not allowed to %s %s: %s", strings.Join(missing, ", "), right.resource, right.without),
				"give the daemon's user the role in deploy/base/rbac.yaml",
			})
		}
	}
	if len(denied) == 0 {
		return []Finding{ok("rights", "all that every daemon needs")}
	}
	return denied
}

// mostSkew is how much the clocks may differ.
const mostSkew = 3 * time.Second

// finding returns whether this clock is right: by the API server's, or if it did not answer, by the kernel.
func (c *clock) finding() Finding {
	const check, do = "clock", "run chrony or another time service: the temporaryOverrides of StartPolicies depend on the clock"
	switch state, err := unix.Adjtimex(&unix.Timex{}); {
	case c.ahead != nil && c.ahead.Abs() > mostSkew:
		return warning(check, fmt.Sprintf("it differs from the API server's by %s", c.ahead.Round(time.Second)), do)
	case c.ahead != nil:
		return ok(check, "it agrees with the API server's")
	case err == nil && state == unix.TIME_ERROR:
		return warning(check, "the kernel reports that no time service sets it", do)
	}
	return ok(check, "a time service sets it")
}
