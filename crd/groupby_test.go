package crd

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnknownField(t *testing.T) {
	t.Parallel()
	for groupBy, want := range map[string]string{
		"":                            "",
		".spec.containers[0].image":   "",
		"{.spec.containers[*].image}": "",
		"{$.metadata.namespace}":      "",
		".metadata.labels.app":        "",
		`.metadata.labels.app\.kubernetes\.io/name`:      "",
		"{.metadata.labels['app']}":                      "",
		".metadata.creationTimestamp":                    "",
		".metadata.managedFields[0].fieldsV1.f:x":        "",
		".spec.securityContext.runAsUser":                "",
		".spec.containers[0].resources.requests.cpu":     "",
		".spec.containers[0].livenessProbe.httpGet.port": "",
		".spec.volumes[0].configMap.name":                "",
		`{.spec.tolerations[?(@.key=="a")].effect}`:      "",
		".spec.contaners[0].image":                       ".spec.contaners",
		".status.phase":                                  ".status",
		".kind":                                          ".kind",
		".metadata.label.app":                            ".metadata.label",
		".spec.containers.image":                         ".spec.containers.image",
		".spec.containers[0].imag":                       ".spec.containers[].imag",
		".metadata.labels.app.kubernetes.io/name":        ".metadata.labels.app.kubernetes",
		"{.spec.nodename}":                               ".spec.nodename",
	} {
		assert.Equal(t, want, UnknownField(groupBy), groupBy)
	}
}
