package preflight

// Level says how bad a finding is.
type Level string

// The levels, from good to bad.
const (
	// OK: nothing to do.
	OK Level = "ok"
	// Warning: pods are paced, but something is worse than it could be.
	Warning Level = "warning"
	// Fault: pods are not paced as configured, or not at all.
	Fault Level = "fault"
)

// Finding is what was found out about one thing that the daemon needs.
type Finding struct {
	// Check names the thing in one word.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Says is what is so, in one line; Do what to do about it, absent where there is
	// nothing to do.
	Says string `json:"says"`
	Do   string `json:"do,omitempty"`
}

// Report is all findings of one node, in the order in which they are worth reading.
type Report struct {
	// Version is the program's, Node the node's name.
	Version  string    `json:"version"`
	Node     string    `json:"node"`
	Findings []Finding `json:"findings"`
}

// Count returns how many findings are of a level.
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
