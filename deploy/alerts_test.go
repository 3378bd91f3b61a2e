package deploy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Each alert has a section of its name in the manual, which says what to do.
func TestEachAlertHasItsSectionInTheManual(t *testing.T) {
	t.Parallel()
	text := read(t, "alerts/pod-pacemaker.yaml")
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &rules))
	manual := read(t, "operate.md")
	_, section, found := strings.Cut(manual, "\n## Alerts\n")
	require.True(t, found)
	described := map[string]bool{}
	for _, part := range strings.Split(section, "\n### ")[1:] {
		name, what, _ := strings.Cut(part, "\n")
		require.Greater(t, len(strings.TrimSpace(what)), 40, "the section %s says nothing", name)
		described[name] = true
	}
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts++
			require.True(t, described[rule.Alert], "%s has no section in operate.md", rule.Alert)
			require.Equal(t, "https://github.com/pod-pacemaker/pod-pacemaker/blob/main/deploy/operate.md#"+strings.ToLower(rule.Alert),
				rule.Annotations["runbook_url"])
		}
	}
	require.Len(t, described, alerts, "a section has no alert")
}
