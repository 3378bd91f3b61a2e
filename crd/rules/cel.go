package rules

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// expression is a CEL expression: what is called with which arguments. If nothing is called, it is the value.
type expression struct {
	call      string
	arguments []expression
	value     any
}

// tokens matches the words of an expression. What it does not know, like a backslash, becomes a word that nothing expects.
var tokens = regexp.MustCompile(`(?s)r""".*?"""|"[^"\\]*"|'[^'\\]*'|\d+(?:[.]\d+)?|\w+|&&|\|\||[=!<>]=|\S`)

// strengths are the operators between two operands, by how strongly they bind.
var strengths = map[string]int{"?": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "in": 4, "+": 5, "-": 5}

// UnmarshalText reads a CEL expression.
func (e *expression) UnmarshalText(text []byte) (err error) {
	p := &parser{append(tokens.FindAllString(string(text), -1), end)}
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%s: before %q: %v", text, strings.Join(p.rest, " "), fault)
		}
	}()
	*e = p.expression(1)
	p.expect(end)
	return nil
}

// parser reads an expression. It panics if it does not know what comes next.
type parser struct{ rest []string }

const end = "the end" // what a parser reads there

func (p *parser) next() string {
	token := p.rest[0]
	p.rest = p.rest[1:]
	return token
}

// accept reads the next token if it is this one, and reports whether it was.
func (p *parser) accept(token string) bool {
	is := p.rest[0] == token
	if is {
		p.next()
	}
	return is
}

func (p *parser) expect(token string) {
	if !p.accept(token) {
		panic("expected " + token)
	}
}

// expression reads operands and the operators between them that bind at least this strongly.
func (p *parser) expression(least int) expression {
	left := p.operand()
	for {
		operator := p.rest[0]
		strength := strengths[operator]
		if strength < least {
			return left
		}
		p.next()
		operands := []expression{left}
		if operator == "?" {
			operands = append(operands, p.expression(1))
			p.expect(":")
			strength = 0 // to the end
		}
		left = expression{call: operator, arguments: append(operands, p.expression(strength+1))}
	}
}

// operand reads a value and what follows it after dots: its fields, and what is called on it.
func (p *parser) operand() (e expression) {
	token := p.next()
	number, notWhole := strconv.ParseInt(token, 10, 64)
	decimal, notNumber := strconv.ParseFloat(token, 64)
	switch {
	case token == "!":
		return expression{call: token, arguments: []expression{p.operand()}}
	case token == "(":
		e = p.expression(1)
		p.expect(")")
	case token == "[":
		e = expression{call: token, arguments: p.arguments("]")}
	case notWhole == nil:
		e.value = number
	case notNumber == nil:
		e.value = decimal
	case strings.HasPrefix(token, "r\"\"\""):
		e.value = token[4 : len(token)-3]
	case len(token) > 1 && strings.ContainsAny(token[:1], `'"`):
		e.value = token[1 : len(token)-1]
	case p.accept("("):
		e = called(token, p.arguments(")"))
	default:
		e = expression{call: "variable", value: name(token)}
	}
	for p.accept(".") {
		member, on := name(p.next()), []expression{e}
		if p.accept("(") {
			e = called("."+member, append(on, p.arguments(")")...))
		} else { // CEL writes its own reserved words as __word__
			e = expression{call: ".", arguments: on, value: strings.Trim(member, "_")}
		}
	}
	return e
}

func (p *parser) arguments(last string) (all []expression) {
	for !p.accept(last) {
		if all = append(all, p.expression(1)); p.rest[0] != last {
			p.expect(",")
		}
	}
	return all
}

func called(function string, arguments []expression) expression {
	if functions[function] == nil && function != ".all" && function != ".exists_one" && function != "has" {
		panic("unknown function " + function)
	}
	return expression{call: function, arguments: arguments}
}

func name(token string) string {
	if token == end || !unicode.IsLetter(rune(token[0])) && token[0] != '_' {
		panic("expected a name and not " + token)
	}
	return token
}

// kind is the value of type(x), and of the names of the types.
type kind string

// noValue is the value of what has none: a field is absent, a text is not what it should be, or types do not fit.
const noValue kind = ""

// scope is what one evaluation knows.
type scope struct {
	variables map[string]any
	wrong     any // the first element or key for which an all is false
}

// value evaluates an expression. The values of CEL's int, double, string, list, map and timestamp are int64, float64, string,
// []any, map[string]any and [time.Time]. A duration is an int64 in nanoseconds.
func (s *scope) value(e expression) any {
	switch e.call {
	case "":
		return e.value
	case "variable":
		return s.variables[text(e.value)]
	case "has":
		return s.value(e.arguments[0]) != noValue
	case "&&", "||":
		return s.both(e.call == "&&", e.arguments)
	case ".all":
		return s.all(e.arguments)
	case ".exists_one":
		return s.existsOne(e.arguments)
	}
	values := make([]any, len(e.arguments))
	for i, a := range e.arguments {
		if e.call == "?" && i > 0 && (values[0] == true) != (i == 1) {
			continue // the other one is the value
		}
		if values[i] = s.value(a); values[i] == noValue {
			return noValue
		}
	}
	if e.call == "." {
		values = append(values, e.value)
	}
	return functions[e.call](values)
}

// both returns whether both operands are want. If one is not, the other may have no value.
func (s *scope) both(want bool, operands []expression) any {
	a := s.value(operands[0])
	if a == !want {
		return a
	}
	if b := s.value(operands[1]); b == !want || b == want && a == want {
		return b
	}
	return noValue
}

// all returns whether an expression is true of each element or key, for which a variable stands in it.
func (s *scope) all(arguments []expression) any {
	for _, element := range s.elements(arguments[0]) {
		s.variables[text(arguments[1].value)] = element
		if s.value(arguments[2]) != true {
			s.wrong = element
			return false
		}
	}
	return true
}

// existsOne returns whether an expression is true of exactly one element or key.
func (s *scope) existsOne(arguments []expression) any {
	n := 0
	for _, element := range s.elements(arguments[0]) {
		s.variables[text(arguments[1].value)] = element
		if s.value(arguments[2]) == true {
			n++
		}
	}
	return n == 1
}

// elements returns the elements of a list, or the keys of a map.
func (s *scope) elements(e expression) []any {
	of := s.value(e)
	elements, _ := of.([]any)
	if object, ok := of.(map[string]any); ok {
		for _, key := range sortedKeys(object) {
			elements = append(elements, key)
		}
	}
	return elements
}

// functions have the values of their arguments, and none is noValue. What a method is called on comes first.
var functions = map[string]func(v []any) any{
	"?": func(v []any) any { return cmp.Or(v[1:]...) },
	".": func(v []any) any {
		object, _ := v[0].(map[string]any)
		value, set := object[text(v[1])]
		return orNone(value, set)
	},
	"[":  func(v []any) any { return v },
	"!":  func(v []any) any { return orNone(v[0] == false, v[0] == true || v[0] == false) },
	"==": func(v []any) any { return reflect.DeepEqual(v[0], v[1]) },
	"!=": func(v []any) any { return !reflect.DeepEqual(v[0], v[1]) },
	"<":  func(v []any) any { order, ok := compare(v[0], v[1]); return orNone(order < 0, ok) },
	"<=": func(v []any) any { order, ok := compare(v[0], v[1]); return orNone(order <= 0, ok) },
	">":  func(v []any) any { order, ok := compare(v[0], v[1]); return orNone(order > 0, ok) },
	">=": func(v []any) any { order, ok := compare(v[0], v[1]); return orNone(order >= 0, ok) },
	"in": func(v []any) any { list, ok := v[1].([]any); return orNone(slices.Contains(list, v[0]), ok) },
	"-":  func(v []any) any { return number(v[0]) - number(v[1]) },
	"+": func(v []any) any {
		if text, ok := v[0].(string); ok {
			return fmt.Sprint(text, v[1])
		}
		return number(v[0]) + number(v[1])
	},
	"duration":    func(v []any) any { d, err := time.ParseDuration(text(v[0])); return orNone(int64(d), err == nil) },
	"timestamp":   func(v []any) any { t, err := time.Parse(time.RFC3339, text(v[0])); return orNone(t, err == nil) },
	"double":      func(v []any) any { f, err := strconv.ParseFloat(text(v[0]), 64); return orNone(f, err == nil) },
	"type":        func(v []any) any { return kind(strings.TrimSuffix(reflect.TypeOf(v[0]).String(), "64")) },
	".size":       func(v []any) any { return size(v[0]) },
	".matches":    func(v []any) any { return matches(text(v[1]), text(v[0])) },
	".contains":   func(v []any) any { return strings.Contains(text(v[0]), text(v[1])) },
	".startsWith": func(v []any) any { return strings.HasPrefix(text(v[0]), text(v[1])) },
	".endsWith":   func(v []any) any { return strings.HasSuffix(text(v[0]), text(v[1])) },
	".indexOf": func(v []any) any {
		before, _, found := strings.Cut(text(v[0]), text(v[1]))
		if !found {
			return int64(-1)
		}
		return size(before)
	},
	".charAt": func(v []any) any {
		letters, at := []rune(text(v[0])), number(v[1])
		if at < 0 || at >= int64(len(letters)) {
			return noValue
		}
		return string(letters[at])
	},
}

func orNone(value any, ok bool) any {
	if !ok {
		return noValue
	}
	return value
}

// compare orders two values of the same type. It reports whether they have an order.
func compare(a, b any) (order int, ok bool) {
	switch a := a.(type) {
	case int64:
		b, ok := b.(int64)
		return cmp.Compare(a, b), ok
	case float64:
		b, ok := b.(float64)
		return cmp.Compare(a, b), ok
	case time.Time:
		b, ok := b.(time.Time)
		return a.Compare(b), ok
	}
	return 0, false
}

// text returns a value as text, as double reads a whole number.
func text(v any) string { return fmt.Sprint(v) }

func number(v any) int64 { n, _ := v.(int64); return n }

// size returns the number of characters, elements or entries.
func size(v any) any {
	if text, ok := v.(string); ok {
		return int64(utf8.RuneCountInString(text))
	}
	return int64(reflect.ValueOf(v).Len())
}

var patterns sync.Map

// matches returns whether a pattern matches a text.
func matches(pattern, text string) bool {
	known, ok := patterns.Load(pattern)
	if !ok {
		known, _ = patterns.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	compiled, _ := known.(*regexp.Regexp)
	return compiled.MatchString(text)
}
