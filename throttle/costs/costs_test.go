package costs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func burns(cpu time.Duration) Start { return Start{CPU: cpu, Wall: cpu, Peak: 1} }

func expect(t *testing.T, of *Table, keys ...string) Cost {
	t.Helper()
	c, rank := of.Expect(keys)
	require.GreaterOrEqual(t, rank, 0)
	return c
}

func TestTheFirstKeyThatIsKnownCounts(t *testing.T) {
	t.Parallel()
	table := &Table{}
	_, rank := table.Expect([]string{"web", ""})
	assert.Equal(t, -1, rank, "nothing is learned yet")
	assert.Equal(t, map[string]Cost{}, table.All(), "{} in JSON, not null")
	table.Observe([]string{"web", "", "image"}, burns(4*time.Second), noon)
	table.Observe([]string{"db", "image"}, burns(2*time.Second), noon.Add(time.Hour))

	e, rank := table.Expect([]string{"web", "image"})
	assert.Equal(t, 0, rank)
	assert.Equal(t, 1, e.Count)
	assert.Equal(t, Figure{Mean: 4, Deviation: 2}, e.CPU)
	e, rank = table.Expect([]string{"new", "", "image"})
	assert.Equal(t, 2, rank)
	assert.Equal(t, 2, e.Count)
	assert.Equal(t, Figure{Mean: 3, Deviation: 2}, e.CPU)
	assert.Equal(t, noon.Add(time.Hour), e.Seen)
	assert.Equal(t, []string{"db", "image", "web"}, slices.Sorted(maps.Keys(table.All())), "no key is empty")
}

func TestTheMeanFollowsAChange(t *testing.T) {
	t.Parallel()
	table := &Table{}
	for range 20 {
		table.Observe([]string{"web"}, burns(4*time.Second), noon)
	}
	e := expect(t, table, "web")
	assert.InDelta(t, 4, e.CPU.Mean, 1e-9)
	assert.InDelta(t, 0, e.CPU.Deviation, 0.02)
	for range 16 {
		table.Observe([]string{"web"}, burns(5*time.Second), noon)
	}
	assert.InDelta(t, 4.9, expect(t, table, "web").CPU.Mean, 0.1)
}

// A figure that is far from all earlier ones belongs to another program under the same key.
func TestASurpriseStartsANewMean(t *testing.T) {
	t.Parallel()
	sleeps := Start{CPU: 5 * time.Second, Wall: 50 * time.Second, Idle: 45 * time.Second, Peak: 1}
	for name, other := range map[string]Start{"of CPU time": burns(25 * time.Second), "of time": sleeps} {
		table := &Table{}
		for range 20 {
			table.Observe([]string{"web"}, burns(5*time.Second), noon)
		}
		table.Observe([]string{"web"}, other, noon)
		e := expect(t, table, "web")
		assert.Equal(t, 1, e.Count, name)
		assert.InDelta(t, other.CPU.Seconds(), e.CPU.Mean, 1e-9, name)
		assert.InDelta(t, other.Idle.Seconds(), e.Idle.Mean, 1e-9, name)
	}
}

// In a herd, a start stands in line for most of its time. The table still knows how long it takes alone.
func TestHowLongAStartTakesAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start Start
		want  float64
	}{
		"in a herd":      {Start{CPU: 3 * time.Second, Wall: 40 * time.Second, Waited: 22 * time.Second, Idle: 15 * time.Second, Peak: 1}, 18},
		"four processes": {Start{CPU: 8 * time.Second, Wall: 12 * time.Second, Waited: 40 * time.Second, Idle: time.Second, Peak: 4}, 3},
		"burns no CPU":   {Start{Wall: 7 * time.Second, Idle: 7 * time.Second}, 7},
	} {
		table := &Table{}
		table.Observe([]string{"web"}, c.start, noon)
		assert.InDelta(t, c.want, expect(t, table, "web").Alone(), 1e-9, name)
	}
}

func TestAKilledStartIsALowerBound(t *testing.T) {
	t.Parallel()
	table := &Table{}
	killed := burns(3 * time.Second)
	killed.Killed = true
	table.Observe([]string{"web", "image"}, killed, noon)
	e := expect(t, table, "web")
	assert.Zero(t, e.Count)
	assert.InDelta(t, 3, e.CPU.Mean, 0)

	table.Observe([]string{"image"}, burns(5*time.Second), noon)
	e, rank := table.Expect([]string{"web", "image"})
	assert.Equal(t, 1, rank, "a measured cost goes before a bound")
	assert.InDelta(t, 5, e.CPU.Mean, 0, "a bound does not count as a start")
	table.Observe([]string{"image"}, killed, noon.Add(time.Hour))
	assert.Equal(t, e, expect(t, table, "image"), "the known cost is above the bound, so the bound proves nothing")
	killed.CPU = 9 * time.Second
	table.Observe([]string{"image"}, killed, noon)
	e = expect(t, table, "image")
	assert.Equal(t, 1, e.Count)
	assert.Greater(t, e.CPU.Mean, 5.)
}

func TestTheKeysObservedLongestAgoAreForgotten(t *testing.T) {
	t.Parallel()
	table := &Table{}
	for i := range MaxKeys + 10 {
		table.Observe([]string{fmt.Sprint("a/", i)}, burns(time.Second), noon.Add(time.Duration(i)*time.Second))
		table.Observe([]string{"a/often"}, burns(time.Second), noon.Add(time.Duration(i)*time.Second))
	}
	keys := table.All()
	assert.Len(t, keys, MaxKeys)
	assert.Contains(t, keys, "a/often")
	assert.NotContains(t, keys, "a/10")
	assert.Contains(t, keys, "a/11")
}

// However many kinds of pods a namespace starts, the table keeps what it knows of the others.
func TestANamespaceDoesNotMakeTheTableForgetOthers(t *testing.T) {
	t.Parallel()
	table := &Table{}
	for i := range 9 {
		table.Observe([]string{fmt.Sprint("a/", i)}, burns(time.Second), noon)
	}
	for i := range 2 * MaxKeys {
		table.Observe([]string{fmt.Sprint("b/", i)}, burns(time.Second), noon.Add(time.Duration(1+i)*time.Second))
	}
	keys := table.All()
	assert.Len(t, keys, MaxKeys)
	for i := range 9 {
		assert.Contains(t, keys, fmt.Sprint("a/", i))
	}
}

func TestATableBelongsToItsMachine(t *testing.T) {
	t.Parallel()
	here := Machine{CPU: "Z80", Cores: 2}
	table := &Table{}
	table.Observe([]string{"web", "image"}, Start{CPU: 3 * time.Second, Wall: 9 * time.Second, Idle: time.Second, Peak: 1.5, Disk: 4096}, noon)
	data, err := table.Encode(here)
	require.NoError(t, err)
	again, err := Decode(data, here, time.Now())
	require.NoError(t, err)
	assert.Equal(t, table, again)

	_, err = Decode(data, Machine{CPU: "Z80", Cores: 4}, time.Now())
	require.ErrorContains(t, err, "another machine")
	for what, damage := range map[string]func(string) string{
		"half":        func(s string) string { return s[:len(s)/2] },
		"version 9":   func(s string) string { return strings.Replace(s, `"version": 2`, `"version": 9`, 1) },
		"not a table": func(string) string { return "[]" },
	} {
		text := damage(string(data))
		require.NotEqual(t, string(data), text, what)
		_, err := Decode([]byte(text), here, time.Now())
		require.Error(t, err, what)
		require.NotContains(t, err.Error(), "another machine", what)
	}
}

// Any file gives either a table that learns on, or an error.
func FuzzDecode(f *testing.F) {
	table := &Table{}
	table.Observe([]string{"web"}, burns(time.Second), noon)
	data, err := table.Encode(Machine{})
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Decode(data, Machine{}, time.Now())
		if err != nil {
			return
		}
		table.Observe([]string{"web"}, burns(time.Second), time.Now())
		if keys := table.All(); len(keys) > MaxKeys {
			t.Fatalf("%d keys", len(keys))
		}
	})
}

// The clock of the node was ahead until it was set, and what was learned meanwhile is on the disk.
func TestATableOfAClockThatWasAheadLearnsOn(t *testing.T) {
	t.Parallel()
	now := time.Now().Round(0)
	var ahead Table
	for i := range MaxKeys {
		ahead.Observe([]string{strconv.Itoa(i)}, Start{CPU: time.Second}, now.AddDate(1, 0, 0))
	}
	data, err := ahead.Encode(Machine{})
	require.NoError(t, err)
	table, err := Decode(data, Machine{}, now)
	require.NoError(t, err)
	table.Observe([]string{"new"}, Start{CPU: time.Second}, now.Add(time.Minute))
	_, rank := table.Expect([]string{"new"})
	require.Zero(t, rank)
}
