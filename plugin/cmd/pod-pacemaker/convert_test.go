package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConvertWritesWhatCheckAccepts(t *testing.T) {
	t.Parallel()
	const config = "{apiVersion: woehrl.net/v1alpha, kind: PacemakerConfig, metadata: {name: a}, spec: {throttleConfig: {maxConcurrent: {value: 2}}}}\n"
	const throttle = "{apiVersion: schedule.k8s.everpeace.github.com/v1alpha1, kind: ClusterThrottle, metadata: {name: b}, spec: {selector: {selecterTerms: [{podSelector: {}}]}, threshold: {resourceCounts: {pod: 3}}}}\n"
	code, stdout, stderr := call(t, "convert", file(t, config+"---\n"+throttle))
	assert.Equal(t, exitOK, code, stderr)
	assert.Equal(t, 2, strings.Count(stdout, "---\n"))
	assert.Contains(t, stderr, `pod-pacemaker: document 2, StartPolicy "b": counts the pods of each node`)
	code, checked, stderr := call(t, "check", file(t, stdout))
	assert.Equal(t, exitOK, code, stderr)
	assert.Contains(t, checked, `PacemakerConfig "a"`)
	assert.Contains(t, checked, `StartPolicy "b"`)

	code, stdout, stderr = call(t, "convert", file(t, "{apiVersion: v1, kind: Pod, metadata: {name: p}}\n---\n"+config))
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stdout, "name: a\n", "the others are written")
	assert.Contains(t, stderr, `document 1, Pod "p": v1 Pod: neither`)

	code, _, stderr = call(t, "convert", file(t, ""))
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stderr, "it has no object")
	code, _, _ = call(t, "convert", "/none")
	assert.Equal(t, exitInvalid, code)
}
