package logind

import (
	"fmt"
	"strings"
)

// rule says which signals a connection wants: the value that each of the named
// properties of a signal must have.
type rule map[string]string

// shutdownSignal are the properties of the only signal that is ever sent.
var shutdownSignal = rule{
	"type": "signal", "sender": logindName, "path": logindPath, "interface": logindInterface, "member": "PrepareForShutdown",
}

// parseRule reads a match rule. An error is of the sender: what cannot be understood
// here, or a key that no signal of logind could be told apart by.
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

// wantsShutdown tells whether the rule lets the signal of a shutdown through.
func (r rule) wantsShutdown() bool {
	for key, value := range r {
		if shutdownSignal[key] != value {
			return false
		}
	}
	return true
}
