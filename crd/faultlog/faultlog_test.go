package faultlog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
)

func TestAFaultIsLoggedOnceAndThatItIsOver(t *testing.T) {
	t.Parallel()
	log, hook := logtest.NewNullLogger()
	var faults Log
	full, forbidden := errors.New("full"), errors.New("forbidden")
	for _, err := range []error{nil, full, full, forbidden, full, nil, nil, full} {
		faults.Try(log, err, "cannot write", "written again")
	}
	var lines []string
	for _, e := range hook.AllEntries() {
		lines = append(lines, fmt.Sprint(e.Level, ": ", e.Message, ": ", e.Data[logrus.ErrorKey]))
	}
	assert.Equal(t, []string{
		"warning: cannot write: full", "warning: cannot write: forbidden", "warning: cannot write: full",
		"info: written again: <nil>", "warning: cannot write: full",
	}, lines)
}
