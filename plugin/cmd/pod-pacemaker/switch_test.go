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
	stdout := says(t, "off", "--for", "30m", "--run-dir", dir)
	assert.Equal(t, "off until "+at(300).Add(30*time.Minute).UTC().Format(time.RFC3339)+": no pod of this node waits\n", stdout)
	assert.Equal(t, 30*time.Minute, *f.off)

	for _, wrong := range []string{"0s", "25h", "-1h"} {
		assert.Contains(t, fails(t, exitInvalid, "off", "--for", wrong, "--run-dir", dir), "must be from 1s to 24h")
	}
	assert.Equal(t, 30*time.Minute, *f.off)

	assert.Equal(t, "on: the config is in force\n", says(t, "on", "--run-dir", dir))
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
	stdout := says(t, "admit", "default/at-the-gate", "--run-dir", dir)
	assert.Equal(t, "admitted after 12s: default/at-the-gate\n", stdout)

	for pod, want := range map[string]string{
		"default/ready":     "pod-pacemaker: nothing to admit: default/ready: started ",
		"default/in-shadow": "pod-pacemaker: nothing to admit: default/in-shadow: waiting ",
		"default/absent":    "not known on this node",
	} {
		assert.Contains(t, fails(t, exitFailure, "admit", pod, "--run-dir", dir), want)
	}
}

// The pod may start between the question and the answer.
func TestAdmitFailsIfThePodWaitsNoLonger(t *testing.T) {
	t.Parallel()
	stderr := fails(t, exitFailure, "admit", "default/at-the-gate", "--run-dir", serve(t, &fixed{status: storyStatus()}))
	assert.Contains(t, stderr, "nothing holds the pod now")
}
