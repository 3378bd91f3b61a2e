package main

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFields(t *testing.T) {
	t.Parallel()
	const object = ` { "a" : 1, "b":"x\"}]{[", "c":{"a":2,"d":[1,{"e":"]"}]} ,"f":[ ] , "g":null,"a":-2.5e3}
`
	for name, want := range map[string]string{
		"a": "-2.5e3", "b": `"x\"}]{["`, "c": `{"a":2,"d":[1,{"e":"]"}]}`, "f": "[ ]", "g": "null", "d": "", "": "",
	} {
		value, ok := field(object, name)
		assert.True(t, ok)
		assert.Equal(t, want, value, name)
	}
	for _, bad := range []string{"", "x", "[]", `"a"`, "{", `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,`, `{"a":"x}`, `{"a":1 2}`, `{"a":1}}`, `{a:1}`, `{1:1}`, `{"a":[}`} {
		_, ok := field(bad, "a")
		assert.False(t, ok, bad)
	}
	_, ok := field("{}", "a")
	assert.True(t, ok)
}

func TestConf(t *testing.T) {
	t.Parallel()
	c, err := parseConf(`{"cniVersion":"1.0.0","socket":"/run/s","confDir":"/etc","timeoutMillis":1500,"settleMillis":20,"prevResult":{"x": [1 , 2]}}`)
	require.NoError(t, err)
	assert.Equal(t, conf{"1.0.0", "/run/s", "/etc", 1500 * time.Millisecond, 20 * time.Millisecond, `{"x": [1 , 2]}`}, c)
	for _, odd := range []string{`{}`, `{"timeoutMillis":"1500","socket":["x"]}`, `{"timeoutMillis":-1,"settleMillis":-1}`, `{"timeoutMillis":9e9}`} {
		c, err := parseConf(odd)
		require.NoError(t, err)
		assert.Equal(t, conf{timeout: defaultTimeout}, c, odd)
	}
	_, err = parseConf("nothing")
	require.ErrorIs(t, err, errNoJSON)
}

// For valid JSON, a field has the value that encoding/json finds. Other input does no harm.
func FuzzField(f *testing.F) {
	f.Add(`{"prevResult":{"a":"\\\""},"x":[1,[2]]}`)
	f.Add(`{"prevResult" : null}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, object string) {
		got, ok := field(object, "prevResult")
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(object), &want) != nil || want == nil {
			return
		}
		require.True(t, ok)
		if raw, is := want["prevResult"]; is {
			assert.JSONEq(t, string(raw), got)
		}
	})
}

func FuzzQuoted(f *testing.F) {
	f.Add("a\"b\\c\n\x00")
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		require.NoError(t, json.Unmarshal([]byte(quoted(s)), &back))
	})
}

// Whatever the runtime passes on as configuration, the plugin waits for a bounded time, and passes on what encoding/json
// takes for the result of the plugins before.
func FuzzConf(f *testing.F) {
	f.Add(`{"cniVersion":"1.0.0","socket":"/run/s","confDir":"/etc","timeoutMillis":1500,"settleMillis":20,"prevResult":{"ips":[]}}`)
	f.Add(`{"timeoutMillis":-1,"prevResult":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConf(text)
		if err != nil {
			require.ErrorIs(t, err, errNoJSON)
			return
		}
		assert.Positive(t, c.timeout)
		assert.LessOrEqual(t, c.timeout, math.MaxInt32*time.Millisecond)
		assert.GreaterOrEqual(t, c.settle, time.Duration(0))
		if c.prevResult != "" && json.Valid([]byte(text)) {
			assert.True(t, json.Valid([]byte(c.prevResult)))
		}
	})
}
