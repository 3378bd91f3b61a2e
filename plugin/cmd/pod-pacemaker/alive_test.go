package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAliveReportsByItsExitCode(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, "alive", "--run-dir", serve(t, &fixed{}))
	assert.Zero(t, code)
	assert.Empty(t, stdout+stderr)

	code, stdout, stderr = call(t, "alive", "--run-dir", serve(t, &fixed{stuck: errors.New("the limiter is stuck")}))
	assert.Equal(t, exitFailure, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "the limiter is stuck")
}
