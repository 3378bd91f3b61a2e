// Package verdicts keeps how the scenarios ended: one line of JSON for each end, in files that only grow.
package verdicts

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// Unknown is how many seconds a scenario counts that has not passed yet.
const Unknown = 60

// Verdict is how a scenario ended once.
type Verdict struct {
	Scenario string    `json:"scenario"`
	Passed   bool      `json:"passed"` // a skipped one did not
	Seconds  float64   `json:"seconds"`
	Commit   string    `json:"commit"` // of the sources, with -dirty if they had changes
	At       time.Time `json:"at"`     // when it ended
	Machine  string    `json:"machine"`
	Figures  []string  `json:"figures,omitempty"` // what it measured
}

// Read returns the verdicts of a file, in their order. A file that does not exist has none.
func Read(file string) (all []Verdict, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var v Verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		all = append(all, v)
	}
	return all, lines.Err()
}

// Append adds a verdict to a file, which it makes if need be.
func Append(file string, v Verdict) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// Write makes a file of these verdicts, sorted by scenario.
func Write(file string, all map[string]Verdict) error {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := to.Encode(all[name]); err != nil {
			return err
		}
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// Latest returns the latest verdict of each scenario.
func Latest(all []Verdict) map[string]Verdict {
	latest := map[string]Verdict{}
	for _, v := range all {
		if last, known := latest[v.Scenario]; !known || !v.At.Before(last.At) {
			latest[v.Scenario] = v
		}
	}
	return latest
}

// Shard returns part number part, from 1, of the scenarios, in the order of their names. The parts take about as long as
// each other, by what the scenarios took last, and do not change unless that does.
func Shard(scenarios []string, took map[string]Verdict, part, parts int) (mine []string) {
	seconds := func(name string) float64 {
		if v := took[name]; v.Passed {
			return v.Seconds
		}
		return Unknown
	}
	longest := slices.Clone(scenarios)
	slices.SortFunc(longest, func(a, b string) int { return cmp.Or(cmp.Compare(seconds(b), seconds(a)), cmp.Compare(a, b)) })
	sums := make([]float64, parts)
	for _, name := range longest {
		least := slices.Index(sums, slices.Min(sums))
		sums[least] += seconds(name)
		if least == part-1 {
			mine = append(mine, name)
		}
	}
	slices.Sort(mine)
	return mine
}
