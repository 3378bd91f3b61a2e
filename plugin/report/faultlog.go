package report

import "github.com/sirupsen/logrus"

// faultLog logs each fault once, and not at every try. The zero value has logged none.
type faultLog struct{ last string }

// tell takes how a try went. It logs an error that is another than that of the last try, and the end of one.
func (l *faultLog) tell(log logrus.FieldLogger, err error, fault, over string) {
	before := l.last
	l.last = ""
	if err != nil {
		l.last = err.Error()
	}
	switch {
	case l.last == before:
	case err != nil:
		log.WithError(err).Warn(fault)
	default:
		log.Info(over)
	}
}
