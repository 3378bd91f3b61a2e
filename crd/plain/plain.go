package plain

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns text as one line of at most most bytes. Each run of spaces, line breaks and characters that cannot be
// printed, among them escapes and those that change the direction of writing, becomes one space. Each byte that is not
// UTF-8 becomes U+FFFD. What does not fit is left out, between characters.
func Line(text string, most int) string {
	var line strings.Builder
	space := 0 // 1: one goes before the next character
	for _, r := range text {
		if r == ' ' || !unicode.IsPrint(r) {
			space = min(line.Len(), 1)
			continue
		}
		if line.Len()+space+utf8.RuneLen(r) > most {
			break
		}
		if space > 0 {
			line.WriteByte(' ')
		}
		line.WriteRune(r)
		space = 0
	}
	return line.String()
}

// Text is Line for text of several lines: it keeps line breaks, tabs and spaces, and text of any length.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return ' '
	}, text)
}

// Writer passes on what is written to it, as Text returns it. Each write must end with a whole character. Writer is safe
// for concurrent use if W is.
type Writer struct{ W io.Writer }

// Write implements io.Writer.
func (w Writer) Write(p []byte) (int, error) {
	_, err := io.WriteString(w.W, Text(string(p)))
	return len(p), err
}
