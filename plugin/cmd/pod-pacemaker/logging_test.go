package main

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

func TestLogFormats(t *testing.T) {
	t.Parallel()
	var text, jsonText written
	newLogger(levelWarn, formatText, &text).Info("too small")
	newLogger(levelInfo, formatText, &text).WithField("pod_name", "web-3").Info("start admitted")
	assert.Regexp(t, `^time="[^"]+" level=info msg="start admitted" pod_name=web-3\n$`, text.String())

	newLogger(levelDebug, formatJSON, &jsonText).WithField("pod_name", "web-3").Debug("start admitted")
	var entry map[string]any
	require.NoError(t, json.Unmarshal([]byte(jsonText.String()), &entry))
	assert.Equal(t, "web-3", entry["pod_name"])
	assert.Equal(t, "debug", entry["level"])
}

func TestLogFormatIsTextUnlessStderrIsTheJournal(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "1:2")
	format, err := detectFormat()
	require.NoError(t, err)
	assert.Equal(t, formatText, format)

	t.Setenv("JOURNAL_STREAM", "nonsense")
	var text written
	newLogger(levelInfo, formatAuto, &text)
	assert.Contains(t, text.String(), `level=warning msg="logging as text"`)
}

// The Kubernetes client's lines become entries, so that they keep the format.
func TestKubernetesClientLogsThroughTheDaemon(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	logKubernetes(log)
	defer klog.ClearLogger()

	klog.ErrorS(errors.New("connection refused"), "Failed to watch", "type", "*v1.Pod")
	klog.Background().WithName("reflector").WithValues("node", "n").Info("Listing", "odd")
	klog.Flush()

	entries := hook.AllEntries()
	require.Len(t, entries, 2)
	assert.Equal(t, logrus.WarnLevel, entries[0].Level)
	assert.Equal(t, "Failed to watch", entries[0].Message)
	assert.Equal(t, "*v1.Pod", entries[0].Data["type"])
	assert.Equal(t, errors.New("connection refused"), entries[0].Data[logrus.ErrorKey])
	assert.Equal(t, logrus.DebugLevel, entries[1].Level)
	assert.Equal(t, "reflector", entries[1].Data["logger"])
	assert.Equal(t, "n", entries[1].Data["node"])
}
