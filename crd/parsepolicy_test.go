package crd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	aConfig = "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: default}\n"
	aPolicy = "apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: t1}\n" +
		"spec: {selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 2}}}\n"
)

func TestParseReadsSeveralDocuments(t *testing.T) {
	t.Parallel()
	found, err := Parse([]byte("# comments\n---\n" + aPolicy + "---\n" + aConfig + "---\n" + strings.Replace(aPolicy, "t1", "t2", 1)))
	require.NoError(t, err)
	assert.Equal(t, "default", found.Config.Name)
	require.Len(t, found.Policies, 2)
	assert.Equal(t, "t2", found.Policies[1].Name)
}

// A config that is for a few nodes applies to all of them from a file.
func TestFieldsThatAFileDoesNotObeyAreNamed(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"": "", "instance: blue": "",
		"priority: 1": `PacemakerConfig "default" has priority`, "instance: green": `PacemakerConfig "default" has instance`,
		"instance: blue, priority: 1, nodeSelector: {canary: 'true'}": `PacemakerConfig "default" has nodeSelector, priority`,
	} {
		found, err := Parse([]byte(aConfig + "spec: {" + more + "}\n---\n" + aPolicy))
		require.NoError(t, err, more)
		if want != "" {
			want += ", without effect: a file applies to each daemon that reads it"
		}
		assert.Equal(t, want, found.Ignored("blue"), more)
	}
	found, err := Parse([]byte(strings.Replace(aPolicy, "selector:", "nodeSelector: {a: b}, selector:", 1)))
	require.NoError(t, err)
	assert.Contains(t, found.Ignored(""), `StartPolicy "t1" has nodeSelector, without effect`)
}

func TestParseReadsTheItemsOfAList(t *testing.T) {
	t.Parallel()
	item := func(object string) string {
		return "\n- " + strings.ReplaceAll(strings.TrimSpace(object), "\n", "\n  ")
	}
	found, err := Parse([]byte("apiVersion: v1\nkind: List\nitems:" + item(aConfig) + item(aPolicy) + "\n"))
	require.NoError(t, err)
	assert.Equal(t, "default", found.Config.Name)
	assert.Len(t, found.Policies, 1)
	_, err = Parse([]byte("apiVersion: v1\nkind: List\nitems:" + item(aPolicy) + "\n- word\n"))
	require.ErrorIs(t, err, ErrInvalid)
	assert.EqualError(t, err, "document 2: invalid PacemakerConfig: not a mapping of fields like apiVersion, kind and spec")
}

func TestParseRefusesDocumentsThatDoNotFitTogether(t *testing.T) {
	t.Parallel()
	for text, content := range map[string]string{
		"invalid PacemakerConfig: empty, expected a PacemakerConfig or StartPolicies":                               "# nothing\n",
		"document 2: invalid PacemakerConfig: more than one PacemakerConfig, expected one at most":                  aConfig + "---\n" + aConfig,
		"document 2: invalid StartPolicy: metadata.name: Duplicate value: \"t1\"":                                   aPolicy + "---\n" + aPolicy,
		"document 2: invalid PacemakerConfig: kind: Invalid value: \"Pod\": must be PacemakerConfig or StartPolicy": aConfig + "---\napiVersion: pod-pacemaker.io/v1alpha1\nkind: Pod\n",
		"invalid StartPolicy: apiVersion: Invalid value: \"v1\": must be pod-pacemaker.io/v1alpha1":                 strings.Replace(aPolicy, "pod-pacemaker.io/v1alpha1", "v1", 1),
		"invalid StartPolicy: spec.limits.running.pods: Invalid value: -1: must be a whole number from 0 to 100000": strings.Replace(aPolicy, "pods: 2", "pods: -1", 1),
	} {
		found, err := Parse([]byte(content))
		require.ErrorIs(t, err, ErrInvalid, content)
		assert.Empty(t, found)
		assert.Equal(t, text, err.Error())
	}
}
