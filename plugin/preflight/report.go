package preflight

// Level is how bad a finding is.
type Level string

// The levels, from good to bad.
const (
	// OK: nothing to do.
	OK Level = "ok"
	// Warning: pods are paced, but worse than they could be.
	Warning Level = "warning"
	// Fault: pods are not paced as configured, or not at all.
	Fault Level = "fault"
)

// Finding is the result of one check.
type Finding struct {
	// Check is the name of the check, in one word.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Says is the result in one line. Do is what to do about it; absent if there is nothing to do.
	Says string `json:"says"`
	Do   string `json:"do,omitempty"`
}

// Report has all findings on one node, in a useful reading order.
type Report struct {
	// Version is the program's version. Node is the node's name.
	Version  string    `json:"version"`
	Node     string    `json:"node"`
	Findings []Finding `json:"findings"`
}

// Count returns the number of findings of a level.
func (r Report) Count(l Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}

func ok(check, says string) Finding { return Finding{Check: check, Level: OK, Says: says} }

func warning(check, says, do string) Finding {
	return Finding{Check: check, Level: Warning, Says: says, Do: do}
}

func fault(check, says, do string) Finding {
	return Finding{Check: check, Level: Fault, Says: says, Do: do}
}
