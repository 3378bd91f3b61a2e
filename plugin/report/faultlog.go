package report

// faultLog remembers the last fault that was logged, so that each is logged once, and not at every try.
type faultLog struct{ last string }

// changed takes how a try went, and reports whether that is another fault than the last, or the end of one.
func (l *faultLog) changed(err error) (isNew, isOver bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	before := l.last
	l.last = text
	return text != "" && text != before, text == "" && before != ""
}
