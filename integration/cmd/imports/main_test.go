package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPackageForTestsIsLeftOut(t *testing.T) {
	t.Parallel()
	imports := parse("m", "m/gate fmt m/wire\nm/gate/gatetest m/gate m/socket\nm/gate/gatetest/shapes m/gate\nm/wire\n\nother/wire m/socket\n")
	require.Equal(t, map[string][]string{"gate": {"wire"}, "wire": {}}, imports)
}

func TestImpliedImportsAreLeftOut(t *testing.T) {
	t.Parallel()
	reduced := reduce(map[string][]string{"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "e": nil})
	require.Equal(t, map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"d"}, "e": nil}, reduced)
	require.Equal(t, "```mermaid\ngraph TD\n  a --> b\n  b --> c\n  c --> d\n```\n", draw(reduced))
}

func TestTheTableHasAllImportsOfTheDaemonsPackages(t *testing.T) {
	t.Parallel()
	text := table(map[string][]string{"plugin/internal/b": {"throttle", "plugin/internal/a", "crd"}, "plugin/internal/a": {"crd"}, "plugin/internal/c": nil, "crd": {"throttle"}})
	require.Contains(t, text, "\n|---|---|---|\n| `a` |  | crd |\n| `b` | a | crd, throttle |\n")
	require.NotContains(t, text, "`c`")
}
