package preflight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// apiServer is an API server that knows one node, and allows everything except deny.
type apiServer struct {
	deny string // resource or resource/subresource, or verb, resource, namespace and name
	crds bool
	// configs are the PacemakerConfigs. The label size of the node is big.
	configs  []map[string]any
	policies []map[string]any
	daemons  []string // namespace and DaemonSet of pods of the node
	runtime  string   // version of its containerd; empty for 2.3.1
	fails    string   // the reason with which every request fails; empty: none does
}

func (a apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, body any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	status := func(code int, reason string) {
		answer(code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": r.URL.Path + ": " + reason})
	}
	switch {
	case a.fails != "":
		status(map[string]int{"Unauthorized": http.StatusUnauthorized, "InternalError": http.StatusInternalServerError}[a.fails], a.fails)
	case r.URL.Path == "/api/v1/nodes/worker-3":
		answer(http.StatusOK, map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"labels": map[string]string{"size": "big"}}, "status": map[string]any{"nodeInfo": map[string]any{"containerRuntimeVersion": "containerd://" + cmp.Or(a.runtime, "2.3.1")}}})
	case strings.HasSuffix(r.URL.Path, "/pacemakerconfigs") && a.crds:
		answer(http.StatusOK, map[string]any{"kind": "PacemakerConfigList", "apiVersion": "pod-pacemaker.io/v1alpha1", "items": append([]map[string]any{}, a.configs...)})
	case r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("fieldSelector") == "spec.nodeName=worker-3":
		pods := []map[string]any{{"metadata": map[string]any{"name": "bare", "namespace": "shop"}}}
		for _, of := range a.daemons {
			namespace, name, _ := strings.Cut(of, "/")
			pods = append(pods, map[string]any{"metadata": map[string]any{"name": name + "-x", "namespace": namespace,
				"ownerReferences": []map[string]any{{"kind": "DaemonSet", "name": name, "controller": true}}}})
		}
		answer(http.StatusOK, map[string]any{"kind": "PodList", "apiVersion": "v1", "items": pods})
	case strings.HasSuffix(r.URL.Path, "/startpolicies"):
		answer(http.StatusOK, map[string]any{"kind": "StartPolicyList", "apiVersion": "pod-pacemaker.io/v1alpha1", "items": append([]map[string]any{}, a.policies...)})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Resource, Subresource, Verb, Name, Namespace string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			status(http.StatusBadRequest, "BadRequest")
			return
		}
		of := review.Spec.ResourceAttributes
		asked := strings.TrimSuffix(of.Resource+"/"+of.Subresource, "/")
		if strings.Contains(a.deny, " ") {
			asked = strings.TrimSpace(strings.Join([]string{of.Verb, of.Resource, of.Namespace, of.Name}, " "))
		}
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
	for _, check := range []string{"api", "crds", "rights"} {
		assert.Equal(t, OK, level(t, report, check).Level, "%+v", report)
	}
	assert.Contains(t, level(t, report, "config").Says, "while no PacemakerConfig object selects this node")
}

// The faults of the runtime's version decide whether containers wait in the gate.
func TestTheRuntimesVersionIsJudged(t *testing.T) {
	t.Parallel()
	const wait, unused = "can be executed, and a container may wait there for up to 1m30s", "can be executed, but is not used with this runtime"
	for _, c := range []struct {
		version string
		gate    waiting.GateUse
		level   Level
		runtime string
		says    string
	}{
		{"2.4.2", waiting.GateAuto, OK, "containerd 2.4.2 has no known fault", wait},
		{"2.3.2", waiting.GateAuto, Warning, "containerd 2.3.2 keeps", wait},
		{"2.2.5", waiting.GateAuto, Warning, "containerd 2.2.5 holds up statistics while a hook waits; 2.3.2 does not; containerd 2.2.5 keeps", unused},
		{"1.7.35", waiting.GateAuto, Warning, "containerd 1.7.35", unused},
		{"1.7.35", waiting.GateAlways, Warning, "containerd 1.7.35", wait},
	} {
		o := inCluster(t, apiServer{crds: true, runtime: c.version})
		o.Gate = c.gate
		report := run(t, o)
		assert.Equal(t, c.level, level(t, report, "runtime").Level, c.version)
		assert.Contains(t, level(t, report, "runtime").Says, c.runtime)
		assert.Contains(t, level(t, report, "gate").Says, c.says, c.version)
	}
}

func configObject(t *testing.T, name, spec string) (u map[string]any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: pod-pacemaker.io/v1alpha1, kind: PacemakerConfig, metadata: {name: "+name+"}, spec: "+spec+"}"), &u))
	return u
}

func TestTheConfigThatSelectsTheNodeIsNamed(t *testing.T) {
	t.Parallel()
	o := inCluster(t, apiServer{crds: true, configs: []map[string]any{
		configObject(t, "small", "{priority: 8, nodeSelector: {size: small}, throttleConfig: {maxConcurrent: {value: 4}}}"),
		configObject(t, "big", "{mode: Shadow, nodeSelector: {size: big}, throttleConfig: {maxConcurrent: {value: 3}}}"),
		configObject(t, "canary", "{instance: canary, priority: 9, throttleConfig: {maxConcurrent: {value: 5}}}"),
	}})
	o.Instance, o.ConfigFile = "canary", ""
	report := run(t, o)
	assert.Contains(t, level(t, report, "config").Says, `"canary": 5 at a time; a pod may start over the limit after `)
	assert.Equal(t, OK, level(t, report, "config").Level)
}

func TestWhichConfigIsInForce(t *testing.T) {
	t.Parallel()
	three := &v1alpha1.PacemakerConfig{Spec: v1alpha1.PacemakerConfigSpec{Mode: v1alpha1.ModeShadow}}
	three.Name, three.Spec.ThrottleConfig.MaxConcurrent = "three", &v1alpha1.MaxConcurrent{Value: new(int32(3))}
	long := three.DeepCopy()
	long.Spec.MaxWait = new(v1alpha1.Duration("301s"))
	_, o := healthy(t)
	file, err := crd.Load(o.ConfigFile)
	require.NoError(t, err)
	path := o.ConfigFile
	for _, c := range []struct {
		api   inAPI
		file  crd.Documents
		level Level
		begin string
		end   string
	}{
		{inAPI{config: three, configKnown: true}, file, OK, `"three", in the mode Shadow, which holds no pod: 3 at a time; a pod may start over the limit after `, path + " applies while no PacemakerConfig object selects this node"},
		{inAPI{config: long, configKnown: true}, crd.Documents{}, Warning, `"three", in the mode Shadow`, "while pods wait"},
		{inAPI{config: three, configKnown: true}, crd.Documents{}, OK, `"three", in the mode Shadow`, " at most"},
		{inAPI{configKnown: true}, file, OK, path + `: "two": 2 at a time; a pod may start over the limit after `, " at most; while no PacemakerConfig object selects this node"},
		{inAPI{configKnown: true}, crd.Documents{}, Warning, "no PacemakerConfig selects this node: ", ""},
		{inAPI{}, crd.Documents{}, OK, "the PacemakerConfig objects that select this node", ""}, // why it is not known is another finding
	} {
		o := o.Options
		if o.Kubeconfig = "any"; c.file.Config == nil {
			o.ConfigFile = ""
		}
		f := configFinding(o, cores.Of(2), c.file, c.api)
		assert.Equal(t, c.level, f.Level, "%+v", f)
		assert.True(t, strings.HasPrefix(f.Says, c.begin) && strings.HasSuffix(f.Says, c.end), f.Says)
	}
}

// Each part of the daemon that is in use needs rights of its own.
func TestTheRightsOfThePartsInUseAreChecked(t *testing.T) {
	t.Parallel()
	policy := func(spec string) []map[string]any {
		object := configObject(t, "policy", spec)
		object["kind"] = "StartPolicy"
		return []map[string]any{object}
	}
	cluster := policy("{scope: Cluster, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 2}}}")
	labels := policy("{selector: {terms: [{namespaceSelector: {matchLabels: {team: a}}}]}, limits: {starting: {pods: 2}}}")
	for _, c := range []struct {
		deny  string
		level Level
		with  func(*Options)
		have  []map[string]any
	}{
		{"list pacemakernodes", Warning, nil, nil},
		{"create leases pacing", Warning, nil, nil},
		{"update leases pacing pod-pacemaker-summary", Warning, nil, nil},
		{"get daemonsets pacing pacer", Warning, func(o *Options) { o.DaemonSet = "pacing/pacer" }, nil},
		{"patch nodes", Fault, func(o *Options) { o.StartupTaint = "not-ready" }, nil},
		{"watch namespaces", Fault, nil, labels},
		{"delete leases pacing", Fault, nil, cluster},
	} {
		for _, denied := range []bool{true, false} {
			server := apiServer{crds: true, deny: c.deny, policies: c.have}
			if !denied {
				server.policies = nil
			}
			o := inCluster(t, server)
			o.Namespace = "pacing"
			if c.with != nil && denied {
				c.with(&o)
			}
			want := c.level
			if unused := c.with != nil || c.have != nil; unused && !denied {
				want = OK
			}
			found := level(t, Report{Findings: askAPI(t.Context(), o.Options).findings}, "rights")
			assert.Equal(t, want, found.Level, "%s: %+v", c.deny, found)
			if want != OK {
				verb, _, _ := strings.Cut(c.deny, " ")
				assert.Contains(t, found.Says, "not allowed to "+verb, c.deny)
			}
		}
	}
}

func TestFaultsOfTheAPIServerAreFound(t *testing.T) {
	t.Parallel()
	assert.Contains(t, level(t, run(t, inCluster(t, apiServer{})), "crds").Do, "deploy/crds")

	needed := level(t, run(t, inCluster(t, apiServer{crds: true, deny: "pods"})), "rights")
	assert.Equal(t, Finding{"rights", Fault, "not allowed to list, watch pods: the daemon does not know the probes, owner and priority of pods", needed.Do}, needed)
	report := level(t, run(t, inCluster(t, apiServer{crds: true, deny: "pacemakernodes/status"})), "rights")
	assert.Equal(t, Warning, report.Level)

	o := inCluster(t, apiServer{crds: true})
	o.NodeName = "worker-4"
	assert.Contains(t, level(t, run(t, o), "node").Do, "--node-name")

	away := inCluster(t, apiServer{})
	write(t, 0o600, away.Kubeconfig, "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}\n")
	assert.Contains(t, level(t, run(t, away), "api").Says, "the API server does not answer: Get \"http://127.0.0.1:1/")

	for reason, do := range map[string]string{"Unauthorized": "--kubeconfig", "InternalError": "when it is well"} {
		failing := askAPI(t.Context(), inCluster(t, apiServer{crds: true, fails: reason}).Options).findings
		require.Len(t, failing, 1, "%+v", failing)
		assert.Equal(t, []any{"api", Fault}, []any{failing[0].Check, failing[0].Level})
		assert.Contains(t, failing[0].Says, reason)
		assert.Contains(t, failing[0].Do, do)
	}

	o.Kubeconfig += ".none"
	noFile := level(t, run(t, o), "api")
	assert.Equal(t, Fault, noFile.Level)
	assert.Contains(t, noFile.Says, o.Kubeconfig+": no such file")
	assert.Contains(t, noFile.Do, "name a kubeconfig")
}

// Infrastructure outside the exempt namespaces waits behind the pods that need it.
func TestDaemonSetsThatWaitAreNamed(t *testing.T) {
	t.Parallel()
	of := []string{"kube-system/kube-proxy", "rook-ceph/csi-rbdplugin", "gpu-operator/nvidia-device-plugin", "rook-ceph/csi-rbdplugin"}
	names := func(spec string) (says string) {
		for _, f := range run(t, inCluster(t, apiServer{crds: true, daemons: of, configs: []map[string]any{configObject(t, "c", spec)}})).Findings {
			if f.Check == "daemonsets" {
				assert.Equal(t, OK, f.Level)
				says = f.Says
			}
		}
		return says
	}
	assert.Equal(t, "the config does not exempt the pods of these DaemonSets: gpu-operator/nvidia-device-plugin, rook-ceph/csi-rbdplugin; exempt those that other pods need, by exemptions.daemonSets.namespaces", names("{}"))
	assert.Contains(t, names("{exemptions: {daemonSets: {namespaces: [rook-ceph]}}}"), "these DaemonSets: gpu-operator/nvidia-device-plugin;")
	assert.Empty(t, names("{exemptions: {namespaces: [kube-system, rook-ceph, gpu-operator]}}"))
	of = nil
	for n := range 10 {
		of = append(of, fmt.Sprintf("team/agent-%d", n))
	}
	assert.Contains(t, names("{}"), "team/agent-7 and 2 more; ")
}
