package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMode(t *testing.T) {
	t.Parallel()
	var spec PacemakerConfigSpec
	assert.Equal(t, ModeEnforce, spec.GetMode())
	assert.True(t, spec.PacesRestarts())
	spec.Mode, spec.Restarts.Pace = ModeShadow, new(false)
	assert.Equal(t, ModeShadow, spec.GetMode())
	assert.False(t, spec.PacesRestarts())
}

func TestDecimalIsExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`80`: 80_000, `"80"`: 80_000, `"0.5"`: 500, `"62.125"`: 62_125, `"0"`: 0, `0`: 0, `"999999.999"`: 999_999_999,
		`2147483647`: 2_147_483_647_000,
	} {
		var d Decimal
		require.NoError(t, json.Unmarshal([]byte(text), &d))
		assert.Equal(t, want, d.Milli(), text)
		assert.InDelta(t, float64(want)/1000, d.Or(7), 0, text)
		written, err := json.Marshal(d)
		require.NoError(t, err)
		assert.Equal(t, text, string(written), "as the user wrote it")
	}
	assert.InDelta(t, 7, (*Decimal)(nil).Or(7), 0)
}
