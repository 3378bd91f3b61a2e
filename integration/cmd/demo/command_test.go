package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says string // on stderr, or on stdout with exit code 0
	}{
		"help":          {[]string{"--help"}, 0, "Ctrl-C"},
		"unknown flag":  {[]string{"--nope"}, 2, "demo: unknown flag: --nope (demo --help says more)\n"},
		"argument":      {[]string{"x"}, 2, `demo: it takes no arguments, only flags: "x" (demo --help says more)` + "\n"},
		"no CPUs":       {[]string{"--cpus", "0"}, 2, "demo: wrong options: --cpus 0: must be 1 or more\n"},
		"nothing built": {[]string{"--bin", empty}, 1, "run make build"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			assert.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr))
			said := stderr.String()
			if c.code == 0 {
				assert.Empty(t, said)
				said = stdout.String()
			}
			assert.Contains(t, said, c.says)
			if c.code != 0 {
				assert.Equal(t, 1, strings.Count(said, "\n"), "one sentence: %s", said)
			}
		})
	}
}
