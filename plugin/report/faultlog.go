package report

import "github.com/sirupsen/logrus"

// faultLog logs a fault once instead of at every try. The zero value is ready for use.
type faultLog struct{ last string }

// log logs err as fault if it differs from the error of the last try, and over when an error has ended.
func (l *faultLog) log(to logrus.FieldLogger, err error, fault, over string) {
	before := l.last
	l.last = ""
	if err != nil {
		l.last = err.Error()
	}
	switch {
	case l.last == before:
	case err != nil:
		to.WithError(err).Warn(fault)
	default:
		to.Info(over)
	}
}
