package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

func costFrom(basis string, count int) *admin.Cost {
	return &admin.Cost{Basis: basis, Cost: &costs.Cost{
		Count: count, Seen: noon, CPU: costs.Figure{Mean: 3, Deviation: 0.25},
		Idle: costs.Figure{Mean: 15, Deviation: 0.5}, Peak: costs.Figure{Mean: 1, Deviation: 0.1}, Disk: costs.Figure{Mean: 3 << 20},
	}}
}

// knownCost is the cost of a pod that a probe may kill.
var knownCost = func() *admin.Cost { c := costFrom("Owner", 7); c.KilledAfterSeconds = 27; return c }()

func TestHowACostIsKnown(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]*admin.Cost{
		"-":                                     nil,
		"unknown":                               {Basis: "None"},
		"3s CPU, learned from 7 starts":         knownCost,
		"3s CPU, from its image":                costFrom("Image", 2),
		"3s CPU, from its other versions":       costFrom("Revisions", 2),
		"3s CPU, unknown: its namespace's mean": costFrom("Namespace", 2),
		"3s CPU, at least this: probes killed the starts": costFrom("Owner", 0),
	} {
		assert.Equal(t, want, costText(c))
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	older := *costFrom("", 2).Cost
	older.Seen = noon.Add(-time.Hour)
	learned := admin.Costs{Machine: costs.Machine{CPU: "Z80 \x1b[2J", Cores: 2}, Costs: map[string]costs.Cost{
		"shop/Deployment/web template=7d4f": *costFrom("", 7).Cost, "node": *costFrom("", 9).Cost, "images=00ff": older,
	}}
	assertGolden(t, "costs", costsText(at(90), learned))

	dir := serve(t, &fixed{costs: learned})
	stdout := says(t, "costs", "-o", "json", "--run-dir", dir)
	var got admin.Costs
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, learned, got)
	assert.Contains(t, says(t, "costs", "--run-dir", dir), "learned on 2 x Z80")
}
