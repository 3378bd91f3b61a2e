package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestFields(t *testing.T) {
	t.Parallel()
	assert.Equal(t, map[string]string{
		"SYSLOG_IDENTIFIER": "pod-pacemaker", "POD_UID": "u-1", "REASON": "Concurrency", "RETRY_IN": "1.5s",
		"ERROR": "line one\nline two", "AHEAD": "3", "LABELS": "map[a:1 b:2]", "NOTHING": "<nil>",
	}, fields(&logrus.Entry{Data: logrus.Fields{
		"pod_uid": "u-1", "reason": reasons.Concurrency, "retry_in": 1500 * time.Millisecond,
		"error": errors.New("line one\nline two"), "ahead": 3, "labels": map[string]string{"b": "2", "a": "1"}, "nothing": nil,
	}}))
}
