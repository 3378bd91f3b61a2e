package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// table is text in columns. Its first row is the head.
type table [][]string

// add adds a row. Cells may have text from elsewhere; see line.
func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = line(cells[i])
	}
	*t = append(*t, cells)
}

// lines returns the lines of the table, indented; none if it has only the head.
func (t table) lines() (lines []string) {
	if len(t) == 1 {
		return nil
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush() // a buffer does not fail
	for row := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimRight(row, " \n"))
	}
	return lines
}
