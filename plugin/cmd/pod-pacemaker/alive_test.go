package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAliveReportsByItsExitCode(t *testing.T) {
	t.Parallel()
	assert.Empty(t, says(t, "alive", "--run-dir", serve(t, &fixed{})))

	stderr := fails(t, exitFailure, "alive", "--run-dir", serve(t, &fixed{stuck: errors.New("the limiter is stuck")}))
	assert.Contains(t, stderr, "the limiter is stuck")
}
