package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apiServer is an API server that knows one node, and allows everything except deny.
type apiServer struct {
	deny string // resource or resource/subresource
	crds bool
	late time.Duration // its clock
}

func (a apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Date", time.Now().Add(a.late).UTC().Format(http.TimeFormat))
	answer := func(code int, body any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	status := func(code int, reason string) {
		answer(code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": r.URL.Path + ": " + reason})
	}
	switch {
	case r.URL.Path == "/api/v1/nodes/worker-3":
		answer(http.StatusOK, map[string]any{"kind": "Node", "apiVersion": "v1", "status": map[string]any{"nodeInfo": map[string]any{"containerRuntimeVersion": "containerd://2.3.1"}}})
	case strings.HasSuffix(r.URL.Path, "/pacemakerconfigs") && a.crds:
		answer(http.StatusOK, map[string]any{"kind": "PacemakerConfigList", "apiVersion": "pod-pacemaker.io/v1alpha1", "items": []any{}})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Resource, Subresource, Verb string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			status(http.StatusBadRequest, "BadRequest")
			return
		}
		asked := strings.TrimSuffix(review.Spec.ResourceAttributes.Resource+"/"+review.Spec.ResourceAttributes.Subresource, "/")
		answer(http.StatusCreated, map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": asked != a.deny}})
	default:
		status(http.StatusNotFound, "NotFound")
	}
}

func inCluster(t *testing.T, a apiServer) Options {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	dir, o := healthy(t)
	o.Kubeconfig = write(t, 0o600, dir+"/kubeconfig", "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], "+
		"clusters: [{name: c, cluster: {server: '"+server.URL+"'}}]}\n")
	return o
}

func TestTheAPIServerIsAsked(t *testing.T) {
	t.Parallel()
	report := run(t, inCluster(t, apiServer{crds: true}))
	for _, check := range []string{"api", "crds", "rights", "clock"} {
		assert.Equal(t, OK, level(t, report, check).Level, "%+v", report)
	}
	assert.Contains(t, level(t, report, "config").Says, "while no PacemakerConfig object selects this node")
	assert.Contains(t, level(t, report, "runtime").Says, "containerd 2.3.1 holds up statistics", "the Node object has the version")
}

func TestFaultsOfTheAPIServerAreFound(t *testing.T) {
	t.Parallel()
	assert.Contains(t, level(t, run(t, inCluster(t, apiServer{})), "crds").Do, "deploy/crds")

	needed := level(t, run(t, inCluster(t, apiServer{crds: true, deny: "pods"})), "rights")
	assert.Equal(t, Finding{"rights", Fault, "not allowed to get, list, watch pods: the daemon does not know the probes, owner and priority of pods", needed.Do}, needed)
	report := level(t, run(t, inCluster(t, apiServer{crds: true, deny: "pacemakernodes/status"})), "rights")
	assert.Equal(t, Warning, report.Level)

	clock := level(t, run(t, inCluster(t, apiServer{crds: true, late: time.Minute})), "clock")
	assert.Equal(t, Warning, clock.Level)
	assert.Contains(t, clock.Says, "by -1m0s")

	o := inCluster(t, apiServer{crds: true})
	o.NodeName = "worker-4"
	assert.Contains(t, level(t, run(t, o), "node").Do, "--node-name")

	away := inCluster(t, apiServer{})
	write(t, 0o600, away.Kubeconfig, "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}\n")
	assert.Contains(t, level(t, run(t, away), "api").Says, "the API server does not answer: Get \"http://127.0.0.1:1/")
	assert.NotContains(t, level(t, run(t, away), "clock").Says, "API server")

	o.Kubeconfig += ".none"
	report4 := run(t, o)
	assert.Equal(t, Fault, level(t, report4, "api").Level)
	require.Equal(t, OK, level(t, report4, "runtime").Level, "the runtime of the host answers instead")
}
