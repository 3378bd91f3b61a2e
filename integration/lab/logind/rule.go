package logind

import (
	"fmt"
	"strings"
)

// rule selects the signals that a connection wants: it has the required value of each named
// property.
type rule map[string]string

// shutdownSignal has the properties of the only signal that this bus sends.
var shutdownSignal = rule{
	"type": "signal", "sender": logindName, "path": logindPath, "interface": logindInterface, "member": "PrepareForShutdown",
}

// parseRule reads a match rule. It returns an error for a rule that this stand-in does not
// understand, and for a key that does not distinguish logind's signals.
func parseRule(text string) (rule, error) {
	r := rule{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if _, known := shutdownSignal[key]; !ok || !known {
			return nil, fmt.Errorf("match rule %q: %q is not understood", text, part)
		}
		r[key] = strings.Trim(value, "'")
	}
	return r, nil
}

// wantsShutdown reports whether the rule selects the signal of a shutdown.
func (r rule) wantsShutdown() bool {
	for key, value := range r {
		if shutdownSignal[key] != value {
			return false
		}
	}
	return true
}
