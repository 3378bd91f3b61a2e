package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestListsForANewPolicyAreSpreadOverTheNodes(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]time.Duration{
		1: 100 * time.Millisecond, 10: time.Second, 300: 30 * time.Second,
		5000: 30 * time.Second, 10_000: 30 * time.Second,
	} {
		assert.Equal(t, want, relistWithin(nodes), nodes)
	}
}
