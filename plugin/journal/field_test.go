package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key   string
		value any
		name  string
		text  string
	}{
		{"pod_uid", "u-1", "POD_UID", "u-1"},
		{"reason", reasons.Concurrency, "REASON", "Concurrency"},
		{"wait", 1500 * time.Millisecond, "WAIT_MS", "1500"},
		{"fill_every", 500 * time.Microsecond, "FILL_EVERY_MS", "0.5"},
		{"error", errors.New("line one\nline two"), "ERROR", "line one\nline two"},
		{"ahead", 3, "AHEAD", "3"},
		{"since", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "SINCE", "2026-01-02T03:04:05.000000006Z"},
		{"labels", map[string]string{"b": "2", "a": "1"}, "LABELS", "map[a:1 b:2]"},
		{"nothing", nil, "NOTHING", "<nil>"},
	} {
		name, text := field(c.key, c.value)
		assert.Equal(t, c.name, name, c.key)
		assert.Equal(t, c.text, text, c.key)
	}
}
