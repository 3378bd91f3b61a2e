package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOffAndOn(t *testing.T) {
	t.Parallel()
	f := &fixed{off: new(time.Duration)}
	dir := serve(t, f)
	code, stdout, stderr := call(t, "off", "--for", "30m", "--run-dir", dir)
	assert.Equal(t, exitOK, code, stderr)
	assert.Equal(t, "off until "+at(300).Add(30*time.Minute).UTC().Format(time.RFC3339)+": no pod of this node waits\n", stdout)
	assert.Equal(t, 30*time.Minute, *f.off)

	for _, wrong := range []string{"0s", "25h", "-1h"} {
		code, _, stderr = call(t, "off", "--for", wrong, "--run-dir", dir)
		assert.Equal(t, exitInvalid, code)
		assert.Contains(t, stderr, "must be from 1s to 24h")
	}
	assert.Equal(t, 30*time.Minute, *f.off)

	code, stdout, stderr = call(t, "on", "--run-dir", dir)
	assert.Equal(t, exitOK, code, stderr)
	assert.Equal(t, "on: the configuration is in force\n", stdout)
	assert.Zero(t, *f.off)
}

func TestStatusSaysThatStartsSettleWhileTheyBurn(t *testing.T) {
	t.Parallel()
	s := herd()
	assert.NotContains(t, statusText(s), "settleTime")
	s.SettledBusy = 8
	assert.Contains(t, statusText(s), "  settled   8 starts over after settleTime while the pod still kept a CPU busy: it needs a readiness probe, or the limit is only a rate\n")
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	f := &fixed{status: storyStatus(), admits: true}
	dir := serve(t, f)
	code, stdout, stderr := call(t, "admit", "default/at-the-gate", "--run-dir", dir)
	assert.Equal(t, exitOK, code, stderr)
	assert.Equal(t, "admitted after 12s: default/at-the-gate\n", stdout)

	for pod, want := range map[string]string{
		"default/ready":     "nothing to admit: default/ready: started ",
		"default/in-shadow": "nothing to admit: default/in-shadow: waiting ",
		"default/absent":    "not known on this node",
	} {
		code, stdout, stderr = call(t, "admit", pod, "--run-dir", dir)
		assert.Equal(t, exitFailure, code)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, want)
	}
}

// The pod may start between the question and the answer.
func TestAdmitFailsIfThePodWaitsNoLonger(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, "admit", "default/at-the-gate", "--run-dir", serve(t, &fixed{status: storyStatus()}))
	assert.Equal(t, exitFailure, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "nothing holds the pod now")
}
