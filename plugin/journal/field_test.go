package journal

import (
	"errors"
	"regexp"
	"strings"
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
		{"podUID", "u-1", "POD_UID", "u-1"},
		{"containerID", "c", "CONTAINER_ID", "c"},
		{"pod.name", "web", "POD_NAME", "web"},
		{"reason", reasons.Concurrency, "REASON", "Concurrency"},
		{"wait", 1500 * time.Millisecond, "WAIT_MS", "1500"},
		{"wait_ms", 1500 * time.Millisecond, "WAIT_MS", "1500"},
		{"fill_every", 500 * time.Microsecond, "FILL_EVERY_MS", "0.5"},
		{"error", errors.New("line one\nline two"), "ERROR", "line one\nline two"},
		{"ahead", 3, "AHEAD", "3"},
		{"since", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "SINCE", "2026-01-02T03:04:05.000000006Z"},
		{"labels", map[string]string{"b": "2", "a": "1"}, "LABELS", "map[a:1 b:2]"},
		{"nothing", nil, "NOTHING", "<nil>"},
		{"message", "mine", "FIELD_MESSAGE", "mine"},
		{"priority", 3, "FIELD_PRIORITY", "3"},
		{"_hostname", "x", "HOSTNAME", "x"},
		{"2nd", "x", "FIELD_2ND", "x"},
		{"", "x", "FIELD", "x"},
		{"größe", "x", "GR__E", "x"},
	} {
		name, text := field(c.key, c.value)
		assert.Equal(t, c.name, name, c.key)
		assert.Equal(t, c.text, text, c.key)
	}
}

// journald drops a field whose name it does not accept.
func FuzzFieldName(f *testing.F) {
	for _, seed := range []string{"pod_uid", "podUID", "", "_", "9", "message", strings.Repeat("x", 200), strings.Repeat("a_", 100)} {
		f.Add(seed)
	}
	accepted := regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	f.Fuzz(func(t *testing.T, key string) {
		if name, _ := field(key, time.Second); !accepted.MatchString(name) {
			t.Errorf("%q becomes %q", key, name)
		}
	})
}
