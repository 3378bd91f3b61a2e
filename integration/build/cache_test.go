package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func fillWith(text string) func(dir string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600) }
}

func TestEntryIsFilledOnce(t *testing.T) {
	t.Parallel()
	c := Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	var fills atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := c.Entry(context.Background(), "thing", []string{"a"}, func(dir string) error {
				fills.Add(1)
				return fillWith("content")(dir)
			})
			if err != nil {
				t.Error(err)
				return
			}
			text, err := os.ReadFile(filepath.Join(dir, "file"))
			if err != nil || string(text) != "content" {
				t.Errorf("found %q, %v", text, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, fills.Load())
}

func TestEntryDependsOnIngredients(t *testing.T) {
	t.Parallel()
	c := Cache{Dir: t.TempDir()}
	seen := map[string]bool{}
	for _, ingredients := range [][]string{{"a", "b"}, {"ab"}, {"a", "b", ""}, {"b", "a"}} {
		dir, err := c.Entry(t.Context(), "thing", ingredients, fillWith("x"))
		require.NoError(t, err)
		require.False(t, seen[dir], "%q shares a folder", ingredients)
		seen[dir] = true
	}
}

func TestEntryThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	c := Cache{Dir: t.TempDir()}
	broken := errors.New("broken")
	_, err := c.Entry(t.Context(), "thing", nil, func(dir string) error {
		return errors.Join(fillWith("half")(dir), broken)
	})
	require.ErrorIs(t, err, broken)
	left, err := filepath.Glob(filepath.Join(c.Dir, "*thing*"))
	require.NoError(t, err)
	require.Empty(t, left)

	dir, err := c.Entry(t.Context(), "thing", nil, fillWith("whole"))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "file"))
}

func TestEntryRemovesTheRemainsOfADeadBuild(t *testing.T) {
	t.Parallel()
	c := Cache{Dir: t.TempDir()}
	stale := filepath.Join(c.Dir, unfinished+"123")
	require.NoError(t, os.Mkdir(stale, 0o755))
	_, err := c.Entry(t.Context(), "thing", nil, fillWith("x"))
	require.NoError(t, err)
	require.NoDirExists(t, stale)
}

func TestEntryStopsWaitingForTheLockWithItsContext(t *testing.T) {
	t.Parallel()
	c := Cache{Dir: t.TempDir()}
	unlock, err := lockFile(t.Context(), filepath.Join(c.Dir, "lock"))
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Entry(ctx, "thing", nil, fillWith("x"))
	require.ErrorIs(t, err, context.Canceled)
}
