package verdicts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestWhatIsAppendedIsRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "verdicts")
	all, err := Read(file)
	require.NoError(t, err)
	assert.Empty(t, all, "no file")
	first := Verdict{Scenario: "TestB", Passed: true, Seconds: 1.5, Commit: "c", At: at, Machine: "m", Figures: []string{"f"}}
	second := Verdict{Scenario: "TestB", At: at.Add(time.Hour)}
	third := Verdict{Scenario: "TestA", At: at}
	for _, v := range []Verdict{second, first, third} {
		require.NoError(t, Append(file, v))
	}
	all, err = Read(file)
	require.NoError(t, err)
	assert.Equal(t, []Verdict{second, first, third}, all)
	latest := Latest(all)
	assert.Equal(t, map[string]Verdict{"TestA": third, "TestB": second}, latest)
	require.NoError(t, Write(file, latest))
	all, err = Read(file)
	require.NoError(t, err)
	assert.Equal(t, []Verdict{third, second}, all)

	require.NoError(t, os.WriteFile(file, []byte("{}\nno\n"), 0o600))
	_, err = Read(file)
	require.ErrorContains(t, err, "verdicts:2: ")
}

func TestShardsHoldEachScenarioOnceAndTakeAboutAsLong(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	took := map[string]Verdict{"a": {Passed: true, Seconds: 300}, "b": {Passed: true, Seconds: 100}, "c": {Passed: true, Seconds: 110}, "d": {Passed: false, Seconds: 1000}}
	var all []string
	for part := range 2 {
		mine := Shard(names, took, part+1, 2)
		all = append(all, mine...)
		sum := 0.0
		for _, name := range mine {
			if sum += took[name].Seconds; !took[name].Passed {
				sum += Unknown - took[name].Seconds
			}
		}
		assert.InDelta(t, (300+100+110+4*Unknown)/2, sum, Unknown)
	}
	slices.Sort(all)
	assert.Equal(t, names, all)
	assert.Equal(t, names, Shard(names, took, 1, 1))
}
