package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const readmeHead = `# The Helm chart of pod-pacemaker

<!-- Generated from Chart.yaml and values.yaml by ` + "`make generate`" + `: change it there. -->

%s. pod-pacemaker is a daemon on each node, a plugin of containerd. It
makes a pod wait until the node can handle another start. It needs Kubernetes %s.

| to | read |
|---|---|
| install it, upgrade it and remove it | [Install](../../install.md), [Upgrade and uninstall](../../upgrade.md) |
| choose a config | [Configure](../../configure.md) |
| know what it may do on a node and in the cluster | [Security](../../security.md) |

` + "`helm test`" + ` checks that the daemon of one node is connected to containerd and paces pods, and runs
` + "`pod-pacemaker preflight`" + `, which checks that the node has what the daemon needs. The log of the Job
` + "`pod-pacemaker-preflight`" + ` shows what it found. The values ` + "`image.*`" + ` name an image that you have built: the
project has no registry yet.

## Values

The chart rejects a value that is not in this list, or that has the wrong type, and names it. Only ` + "`enabled`" + ` and
` + "`global`" + ` are accepted besides, for a chart that holds this one.

| value | default | meaning |
|---|---|---|
`

// readme returns the chart's README, from its Chart.yaml and the comments of values.yaml.
func readme(t *testing.T) string {
	t.Helper()
	c, err := Load()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(Dir(), "values.yaml"))
	require.NoError(t, err)
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &document))
	var out strings.Builder
	fmt.Fprintf(&out, readmeHead, c.Metadata.Description, strings.TrimSuffix(strings.TrimPrefix(c.Metadata.KubeVersion, ">="), ".0-0")+" or later")
	writeValues(&out, "", "", document.Content[0])
	return out.String()
}

// writeValues writes a row for each value. The comment of a group of values goes to its first
// value.
func writeValues(out *strings.Builder, prefix, above string, group *yaml.Node) {
	for i := 0; i < len(group.Content); i += 2 {
		key, value := group.Content[i], group.Content[i+1]
		said := strings.TrimSpace(above + " " + comment(key) + " " + comment(value))
		above = ""
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 && value.Style != yaml.FlowStyle {
			writeValues(out, prefix+key.Value+".", said, value)
			continue
		}
		fmt.Fprintf(out, "| `%s%s` | `%s` | %s |\n", prefix, key.Value, inline(value), said)
	}
}

// comment returns the comment of a node in one line, for a table.
func comment(of *yaml.Node) string {
	if strings.HasPrefix(of.HeadComment, "# Values of the chart") {
		return ""
	}
	words := strings.Fields(strings.ReplaceAll("\n"+of.HeadComment, "\n#", "\n"))
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(words, " "))
}

// inline formats a value in one line.
func inline(value *yaml.Node) string {
	switch {
	case value.Kind == yaml.ScalarNode && value.Value == "":
		return `""`
	case value.Kind == yaml.ScalarNode && value.Style == yaml.DoubleQuotedStyle:
		return `"` + value.Value + `"`
	case value.Kind == yaml.ScalarNode:
		return value.Value
	}
	var parts []string
	for i, one := range value.Content {
		switch {
		case value.Kind == yaml.SequenceNode:
			parts = append(parts, inline(one))
		case i%2 == 1:
			parts = append(parts, value.Content[i-1].Value+": "+inline(one))
		}
	}
	if value.Kind == yaml.SequenceNode {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func TestChartReadmeMatchesTheValues(t *testing.T) {
	t.Parallel()
	want, file := readme(t), filepath.Join(Dir(), "README.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "`make generate` writes it")
}
