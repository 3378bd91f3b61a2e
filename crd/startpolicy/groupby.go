package startpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
)

// mostValue is the longest value of a group, in bytes.
const mostValue = 253

// The steps of a groupBy. The rule of the field has the same, and a test compares them. No step selects a part of a pod
// more than once, such as "..", unions and ranges of JSONPath: so evaluating a groupBy costs at most as much as reading the
// pod once, and the values together are no longer than the pod. All its characters are printable ASCII.
const (
	fieldStep  = `\.(?:[-\w/]|\\[.])+|\['(?:[-\w/.]|\\[.])+'\]`
	indexStep  = `\[(?:\*|-?[0-9]{1,5})\]`
	filterStep = `\[\?\(@(?:` + fieldStep + `)+ *[!=]= *(?:"[ !#-\[\]-~]*"|'[ -&(-\[\]-~]*'|-?[0-9]+|true|false)\)\]`
)

var (
	anyStep     = regexp.MustCompile(fieldStep + `|` + indexStep + `|` + filterStep) //nolint:gocritic // the ranges leave out quote and backslash
	filterParts = regexp.MustCompile(`^\[\?\(@(.+?) *([!=]=) *["']?(.*?)["']?\)\]$`)
	unquoted    = strings.NewReplacer(`['`, "", `']`, "", `\`, "")
)

// Element stands in a path for the elements of a list that an index, [*] or a filter selects.
const Element = "[]"

// PathOf returns the names of the fields in a valid groupBy in order, with Element for each other step.
func PathOf(groupBy string) (path []string) {
	for _, s := range stepsOf(groupBy) {
		path = append(path, s.name)
	}
	return path
}

// valueOf returns the value of a valid groupBy for a pod in its JSON form: the values that the path finds, with spaces
// between them. It returns an empty string if the path finds nothing, and does not change the pod. The value is printable,
// and has 253 bytes at most: one that is not so is changed and cut, and ends with its hash, so that different values stay
// different.
func valueOf(groupBy string, pod map[string]any) string {
	found := []any{pod}
	for _, s := range stepsOf(groupBy) {
		var next []any
		for _, v := range found {
			next = append(next, s.of(v)...)
		}
		found = next
	}
	var value strings.Builder
	for i, v := range found {
		if i > 0 {
			value.WriteByte(' ')
		}
		value.WriteString(textOf(v))
	}
	return short(value.String())
}

// step is one step of a path.
type step struct {
	name   string   // of the field; else Element
	index  int      // of the element; negative: from the end
	all    bool     // all elements
	where  []string // all elements in which this path of fields has a text that is want, or is not; empty if there is no filter
	equals bool
	want   string
}

func stepsOf(path string) (steps []step) {
	for _, text := range anyStep.FindAllString(path, -1) {
		s := step{name: Element}
		if text[0] == '.' || text[1] == '\'' {
			s.name = unquoted.Replace(strings.TrimPrefix(text, "."))
		} else if parts := filterParts.FindStringSubmatch(text); parts != nil {
			s.where, s.equals, s.want = PathOf(parts[1]), parts[2] == "==", parts[3]
		} else {
			s.all = text == "[*]"
			s.index, _ = strconv.Atoi(strings.Trim(text, "[]")) // all: not used
		}
		steps = append(steps, s)
	}
	return steps
}

// of returns the parts of a value that the step selects; none if the value is not the object or the list that the step
// needs.
func (s step) of(value any) []any {
	if s.name != Element {
		if v := fieldOf(value, s.name); v != nil {
			return []any{v}
		}
		return nil
	}
	list, _ := value.([]any)
	switch {
	case s.all:
		return list
	case s.where != nil:
		return slices.DeleteFunc(slices.Clone(list), func(v any) bool { return !s.passes(v) })
	case s.index < 0:
		s.index += len(list)
	}
	if s.index < 0 || s.index >= len(list) {
		return nil
	}
	return list[s.index : s.index+1]
}

// passes returns whether an element passes the filter. One without the field does not.
func (s step) passes(v any) bool {
	for _, name := range s.where {
		v = fieldOf(v, name)
	}
	return v != nil && (textOf(v) == s.want) == s.equals
}

// fieldOf returns the field of an object, or nil if value is no object or has no such field.
func fieldOf(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

// textOf returns a scalar as text, and else JSON.
func textOf(v any) string {
	switch v.(type) {
	case map[string]any, []any:
		text, _ := json.Marshal(v) // what was decoded from JSON can be encoded
		return string(text)
	}
	return fmt.Sprint(v)
}

func short(value string) string {
	line := plain.Line(value, mostValue)
	if line == value {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	hash := "~" + hex.EncodeToString(sum[:8])
	return plain.Line(line, mostValue-len(hash)) + hash
}
