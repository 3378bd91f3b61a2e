package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImpliedImportsAreLeftOut(t *testing.T) {
	t.Parallel()
	reduced := reduce(map[string][]string{"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "e": nil})
	require.Equal(t, map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"d"}, "e": nil}, reduced)
	require.Equal(t, "```mermaid\ngraph TD\n  a --> b\n  b --> c\n  c --> d\n```\n", draw(reduced))
}
