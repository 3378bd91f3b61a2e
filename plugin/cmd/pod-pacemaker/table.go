package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// table is text in columns.
type table struct {
	head []string
	rows [][]string
}

// add adds a row. Cells may have text from elsewhere; see clean.
func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// lines returns the lines of the table, indented; none if it has no row.
func (t *table) lines() (lines []string) {
	if len(t.rows) == 0 {
		return nil
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.head}, t.rows...) {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush() // a buffer does not fail
	for row := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimRight(row, " \n"))
	}
	return lines
}
