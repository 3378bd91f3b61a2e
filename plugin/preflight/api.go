package preflight

import (
	"context"
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
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
)

// Right is a permission at the API server that the daemon uses.
type Right struct {
	Group, Resource string
	Verbs           []string
	// Without is what does not work without it.
	Without string
	// Needed reports whether pods are not paced as configured without it.
	Needed bool
}

// Rights returns the permissions that every daemon uses, for all namespaces or for the cluster.
func Rights() []Right {
	follow := []string{"get", "list", "watch"}
	return []Right{
		{"", "pods", follow, "the daemon does not know the probes, owner and priority of pods", true},
		{"", "nodes", follow, "no PacemakerConfig can be selected by the node's labels", true},
		{"pod-pacemaker.io", "pacemakerconfigs", follow, "only a PacemakerConfig from a file applies", true},
		{"pod-pacemaker.io", "startpolicies", follow, "StartPolicies hold no pod", true},
		{"", "events", []string{"create", "patch"}, "no event reports what a pod waits for", false},
		{"pod-pacemaker.io", "pacemakernodes", []string{"create"}, "kubectl get pacemakernodes does not show this node", false},
		{"pod-pacemaker.io", "pacemakernodes/status", []string{"patch"}, "kubectl get pacemakernodes does not show this node", false},
	}
}

// api has the answers of the API server.
type api struct {
	err     error     // why it could not be asked; the other fields are then zero
	crds    error     // why PacemakerConfigs cannot be read
	runtime string    // of this node, like containerd://2.4.2; empty if unknown
	node    error     // why this node's object could not be read
	denied  []Finding // rights that are missing
	here    time.Time // this clock in the middle of a request
	there   time.Time // the API server's clock in its answer; zero if it has none
}

func askAPI(ctx context.Context, o plugin.Options) (said api) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	access, err := kube.Access(o.Kubeconfig, "pod-pacemaker/"+o.Version)
	if err != nil {
		return api{err: err}
	}
	if err := said.askTime(ctx, access); err != nil {
		return api{err: err}
	}
	client, err := dynamic.NewForConfig(access)
	if err != nil {
		return api{err: err}
	}
	_, said.crds = client.Resource(v1alpha1.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	node, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Get(ctx, o.NodeName, metav1.GetOptions{})
	if said.node = err; err == nil {
		said.runtime, _, _ = unstructured.NestedString(node.Object, "status", "nodeInfo", "containerRuntimeVersion")
	}
	said.askRights(ctx, client)
	return said
}

// askTime requests the version, for the time in the header of every answer.
func (a *api) askTime(ctx context.Context, access *rest.Config) error {
	client, err := rest.HTTPClientFor(access)
	if err != nil {
		return err
	}
	url, _, err := rest.DefaultServerUrlFor(access)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return err
	}
	began := time.Now()
	reply, err := client.Do(request)
	if err != nil {
		return err
	}
	a.here = began.Add(time.Since(began) / 2)
	a.there, _ = http.ParseTime(reply.Header.Get("Date"))
	return reply.Body.Close()
}

func (a *api) askRights(ctx context.Context, client dynamic.Interface) {
	for _, right := range Rights() {
		var missing []string
		for _, verb := range right.Verbs {
			resource, sub, _ := strings.Cut(right.Resource, "/")
			review, err := kube.Review(ctx, client, "authorization.k8s.io", "SelfSubjectAccessReview", map[string]any{
				"resourceAttributes": map[string]any{"group": right.Group, "resource": resource, "subresource": sub, "verb": verb},
			})
			if err != nil {
				a.denied = append(a.denied, warning("rights", "the API server does not report them: "+err.Error(), "compare them with deploy/base/rbac.yaml"))
				return
			}
			if review["allowed"] != true {
				missing = append(missing, verb)
			}
		}
		if len(missing) == 0 {
			continue
		}
		found := warning("rights", fmt.Sprintf("not allowed to %s %s: %s", strings.Join(missing, ", "), right.Resource, right.Without), "give the daemon's user the role in deploy/base/rbac.yaml")
		if right.Needed {
			found.Level = Fault
		}
		a.denied = append(a.denied, found)
	}
}

// findings returns what the answers mean.
func (a *api) findings() (all []Finding) {
	const check = "api"
	if a.err != nil {
		return []Finding{fault(check, "the API server does not answer: "+a.err.Error(), "check that this node reaches it; the chart's apiServer.host sets its address")}
	}
	all = append(all, ok(check, "the API server answers"))
	switch {
	case apierrors.IsNotFound(a.crds):
		all = append(all, fault("crds", "the API server does not know PacemakerConfigs", "kubectl apply -k deploy/crds"))
	case a.crds != nil && !apierrors.IsForbidden(a.crds): // then it is one of the missing rights
		all = append(all, fault("crds", a.crds.Error(), "kubectl apply -k deploy/crds"))
	case a.crds == nil:
		all = append(all, ok("crds", "they are installed"))
	}
	if apierrors.IsNotFound(a.node) {
		all = append(all, fault("node", a.node.Error(), "set --node-name to the name of the Node object"))
	}
	if len(a.denied) == 0 {
		return append(all, ok("rights", "all that are needed"))
	}
	return append(all, a.denied...)
}

// mostSkew is how much the clocks may differ. The time in an answer has whole seconds.
const mostSkew = 3 * time.Second

func clockFinding(a api) Finding {
	const check, do = "clock", "run chrony or another time service: the temporaryOverrides of StartPolicies depend on the clock"
	if !a.there.IsZero() {
		if skew := a.here.Sub(a.there.Add(time.Second / 2)); skew.Abs() > mostSkew {
			return warning(check, fmt.Sprintf("it differs from the API server's by %s", skew.Round(time.Second)), do)
		}
		return ok(check, "it agrees with the API server's")
	}
	state, err := unix.Adjtimex(&unix.Timex{})
	if err == nil && state == unix.TIME_ERROR {
		return warning(check, "the kernel reports that no time service sets it", do)
	}
	return ok(check, "a time service sets it")
}
