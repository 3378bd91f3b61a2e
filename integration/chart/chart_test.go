package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// vals parses values, as `helm --set` would set them.
func vals(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	return v
}

// templates renders the chart, and returns the result of each template by its path in the chart.
func templates(t *testing.T, values string) map[string]string {
	t.Helper()
	files, err := renderAll(Release{Name: "pod-pacemaker", Namespace: "pacing"}, vals(t, values))
	require.NoError(t, err)
	return files
}

// installed renders what `helm install` applies, by the name of the template.
func installed(t *testing.T, values string) map[string]string {
	t.Helper()
	files, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing"}, vals(t, values))
	require.NoError(t, err)
	return files
}

// decoded decodes an object into its API type. A field that the type lacks fails the test.
func decoded(t *testing.T, document string) runtime.Object {
	t.Helper()
	object, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode([]byte(document), nil, nil)
	require.NoError(t, err, document)
	return object
}

// foreign are kinds of other projects, which no scheme here has.
var foreign = []string{"CustomResourceDefinition", "PodMonitor", "PrometheusRule"}

// objects renders the chart and decodes it into API types.
func objects(t *testing.T, values string) (all []runtime.Object) {
	t.Helper()
	for _, text := range installed(t, values) {
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			var header struct{ Kind string }
			require.NoError(t, yaml.Unmarshal([]byte(document), &header), document)
			if header.Kind != "" && !slices.Contains(foreign, header.Kind) {
				all = append(all, decoded(t, document))
			}
		}
	}
	return all
}

// find returns the objects of type T.
func find[T runtime.Object](all []runtime.Object) []T {
	var found []T
	for _, object := range all {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// daemon renders the chart and returns the pod of its DaemonSet.
func daemon(t *testing.T, values string) corev1.PodSpec {
	t.Helper()
	sets := find[*appsv1.DaemonSet](objects(t, values))
	require.Len(t, sets, 1)
	return sets[0].Spec.Template.Spec
}

// everything has values that switch on everything that is off by default.
const everything = `
image: {repository: example.test/pp, tag: v1}
metricsProxy: {enabled: true}
kubeletConfig: [/var/lib/kubelet/config.yaml, /etc/kubernetes/kubelet/config.json]
seLinuxOptions: {type: spc_t}
apiServer: {host: 10.0.0.1, port: 6443}
startupTaint: {enabled: true}
ownNode: {policy: true}
startPolicies: {monitoring: true, namespaceLabels: true, clusterScope: true}
refuseAt: container
waitingRoom: {mode: "on"}
podMonitor: {enabled: true}
prometheusRule: {enabled: true}
dashboard: {enabled: true}
namespace: {create: true}
defaultConfig: {mode: Shadow, throttleConfig: {maxConcurrent: {perCore: "0.5"}}}
processIO: true
extraEnv: [{name: EXTRA, value: "1"}]
extraVolumes: [{name: extra, emptyDir: {}}]
extraVolumeMounts: [{name: extra, mountPath: /extra}]
`

func TestLintFindsNothing(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"{image: {repository: example.test/pp}}", everything} {
		linted := lint.RunAll(Dir(), vals(t, values), "pacing")
		for _, m := range linted.Messages {
			// An icon is for charts that are advertised.
			require.ErrorContains(t, m.Err, "icon is recommended", "%v", m)
		}
	}
}

// A chart whose image nobody named would have each node pull an image of somebody else.
func TestTheChartRefusesToRenderWithoutAnImage(t *testing.T) {
	t.Parallel()
	c, err := Load()
	require.NoError(t, err)
	all, err := util.ToRenderValues(c, nil, common.ReleaseOptions{Name: "pod-pacemaker", Namespace: "pacing"}, common.DefaultCapabilities)
	require.NoError(t, err)
	_, err = engine.Render(c, all)
	require.ErrorContains(t, err, "image.repository: say where your nodes find the image")
}

func TestEverySwitchRenders(t *testing.T) {
	t.Parallel()
	pod := daemon(t, everything)
	require.Equal(t, "spc_t", pod.SecurityContext.SELinuxOptions.Type)
	container := pod.Containers[0]
	require.Equal(t, "example.test/pp:v1", container.Image)
	require.Contains(t, container.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.1"})
	require.Contains(t, container.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: "6443"})
	require.Subset(t, container.Args, []string{
		"--http=127.0.0.1:19464", "--refuse-at=container", "--kubelet-config=/kubelet/config.yaml", "--startup-taint=pod-pacemaker.io/not-ready",
	})
	require.Equal(t, "127.0.0.1", container.ReadinessProbe.HTTPGet.Host)
	require.Nil(t, container.LivenessProbe.HTTPGet, "every process on the node reaches that address")
	require.Equal(t, []string{"pod-pacemaker", "alive"}, container.LivenessProbe.Exec.Command)

	files := installed(t, everything)
	for _, name := range []string{"podmonitor.yaml", "prometheusrule.yaml", "dashboard.yaml", "startuptaint.yaml", "ownnode.yaml", "slots.yaml", "crds.yaml", "metricsproxy.yaml"} {
		require.Contains(t, files, name)
	}
}

func TestPathsAndPortsFollowTheValues(t *testing.T) {
	t.Parallel()
	pod := daemon(t, `
nri: {socket: /x/nri/n.sock, index: "10"}
containerd: {state: /x/containerd}
gate: {mode: never, timeout: 12m}
paths: {gate: /x/bin, run: /x/run, state: /x/state}
waitingRoom: {confDir: /x/net.d, binDir: /x/cni}
http: {port: 9500}
log: {level: debug, format: text}
extraArgs: [--hold=100ms]
`)
	container := pod.Containers[0]
	require.Equal(t, []string{
		"run", "--nri-socket=/x/nri/n.sock", "--nri-index=10", "--containerd-state=/x/containerd", "--run-dir=/x/run", "--state-dir=/x/state",
		"--proc-root=/host/proc", "--gate-path=/x/bin/pacemaker-gate", "--gate=never", "--gate-timeout=12m",
		"--cni=auto", "--cni-conf-dir=/x/net.d", "--cni-bin-dir=/x/cni",
		"--daemonset=$(POD_NAMESPACE)/pod-pacemaker", "--http=127.0.0.1:9500", "--log-level=debug", "--log-format=text", "--hold=100ms",
	}, container.Args)
	require.Contains(t, container.Env, corev1.EnvVar{Name: "POD_PACEMAKER_RUN_DIR", Value: "/x/run"}, "status and why ask this daemon")
	require.Equal(t, int32(9500), container.Ports[0].HostPort)
	host := map[string]string{}
	for _, volume := range pod.Volumes {
		host[volume.Name] = volume.HostPath.Path
	}
	for _, mount := range container.VolumeMounts {
		if mount.Name != "proc" {
			require.Equal(t, host[mount.Name], mount.MountPath, "hooks and daemon must use the same paths")
		}
	}
	require.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: "gate", MountPath: "/x/bin"}, "the daemon installs the hook")
}

// Flux and kustomize refuse an object with a key that stands there twice.
func TestANodeSelectorMayNameTheSystem(t *testing.T) {
	t.Parallel()
	files := templates(t, "{nodeSelector: {kubernetes.io/os: linux, pool: a}}")
	for _, name := range []string{"daemonset.yaml", "tests/preflight.yaml", "tests/status.yaml"} {
		var object map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(files["templates/"+name]), &object), name)
		require.Contains(t, files["templates/"+name], " kubernetes.io/os: linux\n", name)
		require.Contains(t, files["templates/"+name], " pool: a\n", name)
	}
}

// A key without a value in a file of values is null, which takes the default away.
func TestValuesOfThePodMayBeNull(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"affinity", "nodeSelector", "tolerations", "podLabels", "podAnnotations", "imagePullSecrets", "kubeletConfig", "extraArgs"} {
		_, err := renderAll(Release{Name: "pod-pacemaker", Namespace: "pacing"}, vals(t, name+":"))
		require.NoError(t, err, name)
	}
	_, err := renderAll(Release{Name: "pod-pacemaker", Namespace: "pacing"}, vals(t, "gate: {timeout: }"))
	require.NoError(t, err)
}

// The port of the proxy is free where there is no proxy, such as for a second daemon.
func TestTheProxysPortMayBeTheDaemons(t *testing.T) {
	t.Parallel()
	require.Contains(t, daemon(t, "{http: {port: 19465}}").Containers[0].Args, "--http=127.0.0.1:19465")
	_, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing"}, vals(t, "{http: {port: 19465}, metricsProxy: {enabled: true}}"))
	require.ErrorContains(t, err, "metricsProxy.port: is the same as http.port")
}

func TestNamesFollowTheRelease(t *testing.T) {
	t.Parallel()
	files, err := Render(Release{Name: "blue", Namespace: "pacing"}, nil)
	require.NoError(t, err)
	delete(files, "daemonset.yaml") // it has a container of that name
	for name, text := range files {
		for line := range strings.Lines(text) {
			require.NotEqual(t, "name: pod-pacemaker", strings.TrimSpace(line), name)
		}
	}
	require.Contains(t, files["rbac.yaml"], "resourceNames: [blue-pod-pacemaker]")
}

func TestCRDsMatchTheRepositoryAndAreKept(t *testing.T) {
	t.Parallel()
	shipped, err := filepath.Glob(Repository("deploy", "crds", "pod-pacemaker.io_*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, shipped)
	files := installed(t, "")
	rendered := map[string]unstructured.Unstructured{}
	for document := range strings.SplitSeq("\n"+files["crds.yaml"], "\n---\n") {
		object := unstructured.Unstructured{Object: vals(t, document)}
		if object.Object == nil {
			continue
		}
		annotations := object.GetAnnotations()
		require.Equal(t, "keep", annotations["helm.sh/resource-policy"], "uninstalling must not delete the PacemakerConfigs")
		delete(annotations, "helm.sh/resource-policy")
		object.SetAnnotations(annotations)
		rendered[object.GetName()] = object
	}
	require.Len(t, rendered, len(shipped))
	for _, file := range shipped {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		want := unstructured.Unstructured{Object: vals(t, string(data))}
		require.Equal(t, want, rendered[want.GetName()])
	}
}

// The daemon writes to the CNI folders, by the paths of the host, unless the waiting room is off.
func TestOnlyTheWaitingRoomMountsTheCNIFolders(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"off", `"off"`, "false"} { // YAML reads off as false
		plain := daemon(t, "{waitingRoom: {mode: "+off+"}}")
		require.Contains(t, plain.Containers[0].Args, "--cni=off")
		for _, mount := range plain.Containers[0].VolumeMounts {
			require.NotContains(t, mount.MountPath, "cni")
		}
	}
	require.Contains(t, daemon(t, "{}").Containers[0].Args, "--cni=auto")
	for _, on := range []string{"on", `"on"`, "true"} {
		require.Contains(t, daemon(t, "{waitingRoom: {mode: "+on+"}}").Containers[0].Args, "--cni=on")
	}

	pod := daemon(t, "{waitingRoom: {binDir: /usr/libexec/cni}}")
	container := pod.Containers[0]
	require.Subset(t, container.Args, []string{"--cni=auto", "--cni-conf-dir=/etc/cni/net.d", "--cni-bin-dir=/usr/libexec/cni"})
	for name, path := range map[string]string{"cni-conf": "/etc/cni/net.d", "cni-bin": "/usr/libexec/cni"} {
		require.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		require.Equal(t, path, pod.Volumes[i].HostPath.Path)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"{imag: {}}":                               "imag",
		"{image: {pullPolicy: Sometimes}}":         "pullPolicy",
		"{image: {repository: ''}}":                "repository",
		"{gate: {mode: perhaps}}":                  "mode",
		"{gate: {timeout: 100}}":                   "timeout",
		"{gate: {timeout: soon}}":                  "gate.timeout: soon: must be from 1s to 1h",
		"{nri: {index: '5'}}":                      "index",
		"{paths: {run: run}}":                      "run",
		"{http: {port: 0}}":                        "port",
		"{http: {address: 0.0.0.0}}":               "address",
		"{metricsProxy: {image: proxy}}":           "image",
		"{metricsProxy: {enabled: 'yes'}}":         "enabled",
		"{kubeletConfig: /var/lib/kubelet/c.yaml}": "kubeletConfig",
		"{kubeletConfig: [config.yaml]}":           "kubeletConfig",
		"{instance: Blue}":                         "instance",
		"{fullnameOverride: Bad_Name}":             "fullnameOverride",
		"{fullnameOverride: pacer-}":               "fullnameOverride",
		"{extraArgs: [hold]}":                      "extraArgs",
		"{startupTaint: {key: 'a b'}}":             "key",
		"{ownNode: {policy: 'yes'}}":               "policy",
		"{updateStrategy: {type: Recreate}}":       "updateStrategy",
		"{nameOverride: Bad_Name}":                 "nameOverride",
		"{defaultConfig: []}":                      "defaultConfig",
		"{extraEnv: {A: b}}":                       "extraEnv",
		"{seLinuxOptions: {kind: x}}":              "kind",
		"{podMonitor: {enabled: true}}":            "podMonitor.enabled: Prometheus cannot reach 127.0.0.1",
		"{prometheusRule: {enabled: true}}":        "prometheusRule.enabled: Prometheus cannot reach 127.0.0.1",
		"{startupTaint: {policy: false}}":          "policy",
		"{refuseAt: gate}":                         "refuseAt",
		"{waitingRoom: {confDir: net.d}}":          "confDir",
		"{waitingRoom: {mode: sometimes}}":         "mode",
		"{tolerations: {operator: Exists}}":        "tolerations",
		"{resources: {claims: []}}":                "claims",
		"{log: {level: loud}}":                     "level",
		"{apiServer: {port: seven}}":               "port",
		"{crds: {keep: 'yes'}}":                    "keep",
		"{podMonitor: {interval: sometimes}}":      "interval",
		"{gate: {timeout: 12h}}":                   "gate.timeout: 12h: must be from 1s to 1h, like 100s or 12m, and less than kubelet's runtimeRequestTimeout",
		"{image: {repository: 'host:5000/a:v1'}}":  "repository",
		"{image: {repository: 'a@sha256:0'}}":      "repository",
		"{resources: {limits: {cpu: true}}}":       "cpu",
		"{gate: {timeout: 1ms}}":                   "gate.timeout: 1ms: must be from 1s to 1h",
		"{updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}}":     "rollingUpdate.maxSurge",
		"{updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: '10%'}}}": "rollingUpdate.maxSurge",
		"{defaultConfig: {nodeSelector: {a: b}}}":                                 "defaultConfig.nodeSelector",
		"{defaultConfig: {instance: blue}}":                                       "defaultConfig.instance",
		"{defaultConfig: {priority: 1}}":                                          "defaultConfig.priority",
	} {
		_, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing"}, vals(t, values))
		require.ErrorContains(t, err, want, values)
	}
}

// The schema and values.yaml have the same values.
func TestSchemaAndValuesHaveTheSameNames(t *testing.T) {
	t.Parallel()
	c, err := Load()
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, yaml.Unmarshal(c.Schema, &schema))
	var compare func(path string, schema, values map[string]any)
	compare = func(path string, schema, values map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			if path == "" && (name == "global" || name == "enabled") {
				continue // values of a chart that holds this one
			}
			if path == ".seLinuxOptions" || path == ".updateStrategy" || path == ".defaultConfig" {
				continue // a type of Kubernetes, or of the CRD
			}
			value, ok := values[name]
			require.True(t, ok, "%s.%s is in the schema, not in values.yaml", path, name)
			if inner, ok := value.(map[string]any); ok {
				within, ok := property.(map[string]any)
				require.True(t, ok, "%s.%s", path, name)
				compare(path+"."+name, within, inner)
			}
		}
	}
	compare("", schema, c.Values)
}

// Policies keep a daemon to its node, its Leases and its events if the API server supports them, unless the values say
// otherwise.
func TestPoliciesOfTheOwnNodeFromKubernetes130On(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, values string
		want            bool
	}{
		{"v1.29.14", "{}", false},
		{"v1.30.0", "{}", true},
		{"v1.32.3-eks-1", "{startPolicies: {monitoring: true, clusterScope: true}}", true},
		{"", "{}", true},
		{"", "{ownNode: {policy: false}}", false},
		{"v1.29.0", "{ownNode: {policy: true}}", true},
	} {
		files, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing", KubeVersion: c.version}, vals(t, c.values))
		require.NoError(t, err)
		for _, name := range []string{"own-node", "own-slots", "own-events"} {
			require.Equal(t, c.want, strings.Contains(files["ownnode.yaml"], "policyName: pod-pacemaker-"+name+"\n"), "%+v %s", c, name)
		}
	}
}
