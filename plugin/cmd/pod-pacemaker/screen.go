package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// style is how a line looks on a terminal.
type style string

const (
	plain   style = ""
	heading style = "\x1b[1m"
	faint   style = "\x1b[2m"
	alarm   style = "\x1b[1;31m"
)

// line is a line of text.
type line struct {
	text  string
	style style
}

// screen is where lines are shown: a terminal, or anything else, which gets plain
// text.
type screen struct {
	terminal bool
	colors   bool
	size     func() (width, height int, err error)
}

func newScreen(w io.Writer) screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return screen{}
	}
	return screen{
		terminal: true,
		colors:   os.Getenv("NO_COLOR") == "",
		size:     func() (int, int, error) { return term.GetSize(int(f.Fd())) },
	}
}

// text returns the lines, to be shown once.
func (s screen) text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(s.styled(l))
		b.WriteByte('\n')
	}
	return b.String()
}

// picture returns the lines, to be shown in the place of those before: on a
// terminal cut to its size, elsewhere with an empty line at the end.
func (s screen) picture(lines []line) string {
	if !s.terminal {
		return s.text(lines) + "\n"
	}
	var b strings.Builder
	b.WriteString("\x1b[H") // to the top
	for _, l := range s.fit(lines) {
		b.WriteString(s.styled(l))
		b.WriteString("\x1b[K\n") // clear the rest of the line
	}
	b.WriteString("\x1b[J") // clear what is below
	return b.String()
}

// fit cuts lines to the size of the terminal, and says how many are missing.
func (s screen) fit(lines []line) []line {
	width, height, err := s.size()
	if err != nil || width < 1 || height < 3 {
		return lines
	}
	most := height - 1 // the cursor stands on the last
	if len(lines) > most {
		cut := len(lines) - most + 1
		lines = append(lines[:most-1:most-1], line{text: fmt.Sprintf("... %d more lines", cut), style: faint})
	}
	fitted := make([]line, len(lines))
	for i, l := range lines {
		if r := []rune(l.text); len(r) > width {
			l.text = string(r[:width])
		}
		fitted[i] = l
	}
	return fitted
}

func (s screen) styled(l line) string {
	if !s.colors || l.style == plain || l.text == "" {
		return l.text
	}
	return string(l.style) + l.text + "\x1b[0m"
}
