package main

import (
	"strings"
	"unicode/utf8"
)

// table is text in columns. The zero value is an empty one.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// lines draws the table, indented; nothing where there is no row.
func (t *table) lines() []line {
	if len(t.rows) == 0 {
		return nil
	}
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := []line{{text: pad(t.head, widths), style: faint}}
	for _, row := range t.rows {
		lines = append(lines, line{text: pad(row, widths)})
	}
	return lines
}

func pad(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString("  ")
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
	}
	return strings.TrimRight(b.String(), " ")
}
