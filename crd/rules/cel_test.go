package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The values are those that CEL gives. With the files in crd/testdata, package apiserver of integration compares each rule
// with a real API server.
func TestValuesOfExpressions(t *testing.T) {
	t.Parallel()
	self := map[string]any{
		"n": int64(2), "text": "äb/c", "list": []any{"a", "b"}, "object": map[string]any{"k": "v"}, "namespace": "team", "at": "2026-11-27T00:00:00+01:00",
	}
	for text, want := range map[string]any{
		"1 + 2 - 1":    int64(2),
		"1.5":          1.5,
		"'a' + \"b\"":  "ab",
		`r"""\d'"a"""`: `\d'"a`,
		"self.n":       int64(2),
		"true_":        nil,

		"1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 != 2 && !(1 == 2)": true,
		"1 == 2 || 2 < 2":                                        false,
		"1 == 1 || 1 == 2 && 1 == 2":                             true,
		"(1 == 1 || 1 == 2) && 1 == 2":                           false,
		"1 == 2 == (2 == 3)":                                     true,
		"self.n == 2 ? 'two' : 'other'":                          "two",
		"self.n == 3 ? 'three' : 'other'":                        "other",
		"self.n == 3 ? 1 : self.n == 2 ? 2 : 3":                  int64(2),
		"double('1.5') > 1.0 && double(2) <= 2.0":                true,
		"duration('1m30s') == duration('90s')":                   true,
		"duration('1ms') < duration('1s')":                       true,
		"timestamp(self.at) < timestamp('2026-11-27T00:00:00Z')": true,
		"type(self.n) == int && type(self.text) == string":       true,
		"type(self.n) in [int]":                                  true,
		"'a' in ['b', 'a',] && !('c' in ['b'])":                  true,

		"has(self.n) && !has(self.m)":               true,
		"has(self.object.k) && !has(self.object.l)": true,
		"self.__namespace__":                        "team",
		"self.text.size()":                          int64(4),
		"self.list.size() + self.object.size()":     int64(3),
		"self.text.indexOf('/')":                    int64(2),
		"self.text.indexOf('x')":                    int64(-1),
		"self.text.charAt(0)":                       "ä",
		"self.text.charAt(4)":                       noValue,
		"self.text.startsWith('ä') && self.text.endsWith('c') && self.text.contains('b/')": true,
		"self.text.matches('^.b') && !self.text.matches('^b')":                             true,
		"self.list.all(x, x.size() == 1) && self.object.all(k, k == 'k')":                  true,
		"self.list.all(x, x == 'a')":                                                       false,

		// What has no value matters only if the other operand does not decide.
		"self.m":           noValue,
		"self.m == 1":      noValue,
		"!self.m":          noValue,
		"self.m || 1 == 1": true,
		"1 == 1 || self.m": true,
		"self.m && 1 == 2": false,
		"self.m && 1 == 1": noValue,
		"1 == 2 || self.m": noValue,
		"self.m ? 1 : 2":   noValue,
		"'a' < 'b'":        noValue,
		"1 < 2.0":          noValue,
		"!self.n":          noValue,
		"duration('soon') > duration('1s') || 1 == 2": noValue,
	} {
		var e expression
		require.NoError(t, e.UnmarshalText([]byte(text)))
		s := scope{variables: map[string]any{"self": self, "int": kind("int"), "string": kind("string")}}
		assert.Equal(t, want, s.value(e), text)
	}
}

func TestWhatIsNoExpressionIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "1 +", "(1", "1 2", "self.", "self.1", "self.size(", "self.all(x x)", "[1 2]", "f(1)", "self.f(1)", "1 == 1 ? 2", "*", "self % 2", `'a\'b'`, "'a", "1 & 2",
	} {
		var e expression
		assert.Error(t, e.UnmarshalText([]byte(text)), text)
	}
}
