package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// target has the labels by which Prometheus finds the port of a daemon's pod on the node n1.
func target(port string) map[string]string {
	return map[string]string{
		"__address__": "10.0.0.5:19465", "__meta_kubernetes_pod_node_name": "n1",
		"__meta_kubernetes_pod_label_app_kubernetes_io_instance": "pod-pacemaker",
		"__meta_kubernetes_pod_container_port_name":              port,
	}
}

// relabeled returns the labels of a target after the relabelings in the text, or none if they drop it.
func relabeled(t *testing.T, text string, of map[string]string) map[string]string {
	t.Helper()
	var configs []*relabel.Config
	require.NoError(t, yaml.Unmarshal([]byte(text), &configs), text)
	for _, c := range configs {
		require.NoError(t, c.Validate(model.UTF8Validation))
	}
	have := labels.NewBuilder(labels.FromMap(of))
	if !relabel.ProcessBuilder(have, configs...) {
		return nil
	}
	return have.Labels().Map()
}

// notPacing is the regular expression by which the alert PodPacemakerNotPacing selects jobs.
func notPacing(t *testing.T) *regexp.Regexp {
	t.Helper()
	rules, err := os.ReadFile(Repository("deploy", "alerts", "pod-pacemaker.yaml"))
	require.NoError(t, err)
	jobs := regexp.MustCompile(`up\{job=~"([^"]+)"\}`).FindStringSubmatch(string(rules))
	require.NotNil(t, jobs)
	return regexp.MustCompile("^(?:" + jobs[1] + ")$")
}

// Alerts and dashboard show the label instance. It names the node, and one of several daemons on it.
func TestThePodMonitorNamesTheNode(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{"": "n1", "instance: second": "n1.second"} {
		// A release whose own name, and that of its namespace, have no part that the alert looks for.
		files, err := Render(Release{Name: "pacer", Namespace: "pacing"}, vals(t,
			"metricsProxy: {enabled: true}\npodMonitor: {enabled: true}\nfullnameOverride: pacer\n"+values))
		require.NoError(t, err)
		var monitor struct {
			Spec struct {
				PodMetricsEndpoints []struct{ Relabelings yaml.Node } `yaml:"podMetricsEndpoints"`
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(files["podmonitor.yaml"]), &monitor))
		text, err := yaml.Marshal(&monitor.Spec.PodMetricsEndpoints[0].Relabelings)
		require.NoError(t, err)
		have := relabeled(t, strings.NewReplacer("sourceLabels", "source_labels", "targetLabel", "target_label").Replace(string(text)), target("metrics"))
		require.Equal(t, want, have["instance"])
		require.Equal(t, "n1", have["node"])
		require.Regexp(t, notPacing(t), have["job"])
	}
}

// The job in the manual scrapes the proxy, has a name that the alert selects, and names the node.
func TestTheJobInTheManualNamesTheNode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(Repository("deploy", "metrics.md"))
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var config struct {
		Jobs []struct {
			Name    string    `yaml:"job_name"`
			Relabel yaml.Node `yaml:"relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &config))
	require.Len(t, config.Jobs, 1)
	require.Regexp(t, notPacing(t), config.Jobs[0].Name)
	relabelings, err := yaml.Marshal(&config.Jobs[0].Relabel)
	require.NoError(t, err)
	require.Equal(t, "n1", relabeled(t, string(relabelings), target("metrics"))["instance"])
	require.Nil(t, relabeled(t, string(relabelings), target("http")), "only the node itself reaches this port")
}
