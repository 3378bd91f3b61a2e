package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "ab", Cut("ab", 2))
	assert.Equal(t, "a", Cut("aä", 2))
}
