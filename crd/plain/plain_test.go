package plain

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"größe = 1, 日本":                "größe = 1, 日本",
		" \x1b[31mred\r\n\tgreen\n ":   "[31mred green",
		"a\u202eb\u2066c\u200bd":       "a b c d", // bidi controls, and a space of no width
		"a\u0085b\u2028c\x00d":         "a b c d",
		"a\xff\xfeb":                   "a\ufffd\ufffdb",
		strings.Repeat("ü", 1<<15):     strings.Repeat("ü", 31), // 64 KiB
		strings.Repeat(" ", 1<<16):     "",
		strings.Repeat("a", 62) + " b": strings.Repeat("a", 62),
	} {
		assert.Equal(t, want, Line(text, 63), "%q", text)
	}
}

func TestAWriterPassesOnText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	n, err := Writer{&out}.Write([]byte("a\x1b[2J  b\n\tü\u202e\xff\n"))
	require.NoError(t, err)
	assert.Equal(t, 17, n)
	assert.Equal(t, "a [2J  b\n\tü \ufffd\n", out.String())
}

func FuzzLine(f *testing.F) {
	f.Add("\x1b[31mred\n\u202e\xff", 8)
	f.Fuzz(func(t *testing.T, text string, most int) {
		line := Line(text, most)
		if len(line) > max(most, 0) || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("Line(%q, %d) = %q", text, most, line)
		}
		if again := Line(line, most); again != line {
			t.Fatalf("%q becomes %q", line, again)
		}
	})
}
