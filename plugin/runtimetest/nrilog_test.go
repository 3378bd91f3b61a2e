package runtimetest

import (
	"bytes"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
)

// heard is what was logged to a logger.
func heard() (*logrus.Logger, *bytes.Buffer) {
	said := new(bytes.Buffer)
	l := logrus.New()
	l.SetOutput(said)
	return l, said
}

func TestNRISpeaksToTheLastRuntimeThatIsOpen(t *testing.T) {
	t.Parallel()
	var logs sharedLog
	say := func(message string) { logs.write(func(l logrus.FieldLogger) { l.Info(message) }) }
	say("nobody hears this")
	first, toFirst := heard()
	second, toSecond := heard()
	third, toThird := heard()
	removeFirst := logs.add(first)
	removeSecond := logs.add(second)
	removeThird := logs.add(third)
	removeSecond()
	say("for the third")
	removeThird()
	say("for the first")
	removeFirst()
	say("nobody hears this either")

	assert.Regexp(t, `^[^\n]*for the first[^\n]*\n$`, toFirst.String())
	assert.Empty(t, toSecond.String())
	assert.Regexp(t, `^[^\n]*for the third[^\n]*from=nri\n$`, toThird.String())
}

func TestALogIsNotClosedWhileAMessageIsWritten(t *testing.T) {
	t.Parallel()
	var logs sharedLog
	l, _ := heard()
	remove := logs.add(l)
	logs.write(func(logrus.FieldLogger) { assert.False(t, logs.mu.TryLock()) })
	remove()
	assert.True(t, logs.mu.TryLock())
}
