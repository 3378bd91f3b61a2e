package timeline

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Row is one line of the comparison: the figure's name, and its text for each run.
type Row struct {
	What   string
	Values []string
}

// Compare puts the figures of runs side by side. ideal is the time that the herd would take if the
// CPUs were never idle and did no other work.
func Compare(ideal time.Duration, runs ...Run) []Row {
	rows := []Row{
		{What: ""},
		{What: "pods ready"},
		{What: "time until all are ready"},
		{What: "mean time to ready"},
		{What: "most starts at a time"},
		{What: "killed by the liveness probe"},
		{What: "time spent starting in vain"},
		{What: "CPU pressure (PSI some)"},
	}
	for _, r := range runs {
		for i, v := range values(r, ideal) {
			rows[i].Values = append(rows[i].Values, v)
		}
	}
	return rows
}

func values(r Run, ideal time.Duration) []string {
	s := r.Summary()
	all := fmt.Sprintf("not in %s", seconds(r.Length))
	if s.AllReady > 0 {
		all = fmt.Sprintf("%s (%.2f x ideal)", seconds(s.AllReady), s.AllReady.Seconds()/ideal.Seconds())
	}
	mean := seconds(s.MeanReady)
	if s.Ready < s.Pods {
		mean = "more than " + mean
	}
	pressure := "not measured by this kernel"
	if s.HasPressure {
		pressure = fmt.Sprintf("%.0f %%", 100*s.Pressure)
	}
	return []string{
		r.Title(), fmt.Sprintf("%d of %d", s.Ready, s.Pods), all, mean,
		fmt.Sprint(s.Peak), fmt.Sprint(s.Kills), seconds(s.LostTime), pressure,
	}
}

// Title is the run's name and its limit.
func (r Run) Title() string {
	if r.Limit == 0 {
		return r.Name
	}
	return fmt.Sprintf("%s, %d at a time", r.Name, r.Limit)
}

// seconds formats a time with a tenth of a second.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// WriteTable writes rows as aligned columns, with a rule below the first row.
func WriteTable(w io.Writer, rows []Row) error {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(aligned, strings.Join(append([]string{r.What}, r.Values...), "\t"))
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	width := 0
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
		width = max(width, len([]rune(lines[i])))
	}
	head, body := lines[0], lines[1:]
	_, err := fmt.Fprintf(w, "  %s\n  %s\n  %s\n", head, strings.Repeat("─", width), strings.Join(body, "\n  "))
	return err
}
