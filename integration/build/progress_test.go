package build

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlainProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Unix(0, 0)
	p, ok := PlainProgress(&out).(*plain)
	require.True(t, ok)
	p.now = func() time.Time { return now }

	p.Step("cached", 1, 1)
	p.Step("runc v1", 0, 0)
	now = now.Add(time.Second)
	p.Step("runc v1", 1, 100) // too soon for another line
	now = now.Add(plainEvery)
	p.Step("runc v1", 40, 100)
	now = now.Add(time.Second)
	p.Step("runc v1", 1, 1)
	require.Equal(t, "building runc v1\nbuilding runc v1: 40 of 100 packages\nbuilding runc v1: done in 12s\n", out.String())
}

func TestFollowCountsPackages(t *testing.T) {
	t.Parallel()
	steps := &recorded{}
	c := Cache{Progress: steps}
	complaints, err := c.follow(strings.NewReader("go: downloading example.com/x v1.0.0\ninternal/abi\nexample.com/x\n"+
		"# example.com/x\nx.go:1:1: syntax error\n"), "x", 3)
	require.NoError(t, err)
	require.Equal(t, "# example.com/x\nx.go:1:1: syntax error\n", complaints)
	require.Equal(t, [][2]int{{1, 3}, {2, 3}}, steps.steps)
}

type recorded struct{ steps [][2]int }

func (r *recorded) Step(_ string, done, total int) { r.steps = append(r.steps, [2]int{done, total}) }
