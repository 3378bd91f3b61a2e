package report

// said remembers the last fault that was logged, so that it is logged once, and
// not at every try.
type said struct {
	fault string
}

// news takes how a try went, and tells whether that is another fault than the last,
// or the end of one.
func (s *said) news(err error) (fault, over bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	before := s.fault
	s.fault = text
	return text != "" && text != before, text == "" && before != ""
}
