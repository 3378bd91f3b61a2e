package nri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bundleOf makes the bundle of a container or sandbox of the pod in a folder, with at least this size.
func bundleOf(t *testing.T, dir, id, pod string, size int) {
	t.Helper()
	namespace, name, _ := strings.Cut(pod, "/")
	text := fmt.Sprintf(`{"process":{"env":["A=%s"]},"annotations":{"io.kubernetes.cri.sandbox-namespace":%q,"io.kubernetes.cri.sandbox-name":%q}}`,
		strings.Repeat("x", size), namespace, name)
	require.NoError(t, os.Mkdir(filepath.Join(dir, id), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, id, "config.json"), []byte(text), 0o600))
}

func TestTheDaemonRegistersWhenTheNineLargestFitIntoAMessage(t *testing.T) {
	t.Parallel()
	const fits = mostListed/largest - besides - 200 // bytes of environment
	for name, c := range map[string]struct {
		sizes []int // of containers; each is of a pod of its own
		pods  []string
	}{
		"nothing runs":                {nil, nil},
		"many, of the largest size":   {repeat(fits, 50), nil},
		"one is large":                {append(repeat(1000, 50), 3<<20), nil},
		"the largest do not fit":      {append(repeat(fits, 50), 2*fits), []string{"ns/p50 (0.9 MiB)", "ns/p10 (0.4 MiB)"}},
		"a few, which are very large": {repeat(1_100_000, 4), []string{"ns/p0 (1.0 MiB)", "ns/p3 (1.0 MiB)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c0, _ := aConnection()
			c0.listing.dir = t.TempDir()
			for i, size := range c.sizes {
				bundleOf(t, c0.listing.dir, fmt.Sprint("ctr", i), fmt.Sprint("ns/p", i), size)
			}
			err := c0.checkTurn(time.Now())
			if c.pods == nil {
				require.NoError(t, err)
				assert.Empty(t, c0.Delayed())
				return
			}
			for _, pod := range c.pods {
				require.ErrorContains(t, c0.State().Err, pod)
			}
			assert.Equal(t, ListingTooLarge, c0.Delayed())
			require.ErrorContains(t, c0.Paces(), "largest pods and containers of the node")
			assert.NotContains(t, c0.Paces().Error(), "ns/", "every process of the node may read this")
		})
	}
}

// The bundle of a sandbox does not hold the labels of its pod, which the runtime lists, too.
func TestTheDaemonDoesNotRegisterBesidePodsWithManyLabels(t *testing.T) {
	t.Parallel()
	c, _ := aConnection()
	c.listing.dir = t.TempDir()
	labels := map[string]int{"ns/a": 1_100_000, "ns/b": 1_100_000, "ns/c": 1_100_000}
	c.listing.metadata = func(least int) map[string]int {
		require.Equal(t, besides, least)
		return labels
	}
	require.NoError(t, c.checkTurn(time.Now()))
	labels["ns/d"] = 1_100_000
	require.ErrorContains(t, c.checkTurn(time.Now()), "ns/d (1.0 MiB)")
}

func repeat(size, count int) (sizes []int) {
	for range count {
		sizes = append(sizes, size)
	}
	return sizes
}

func TestTheDaemonRegistersAsSoonAsTheLargePodsAreGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 24 {
		bundleOf(t, dir, fmt.Sprint(i), fmt.Sprint("ns/large-", i/8), 1_100_000)
	}
	synctest.Test(t, func(t *testing.T) {
		c, logged := aConnection()
		c.listing.dir = dir
		h := &heard{}
		c.handler = h
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		may := make(chan struct{})
		go func() { c.awaitTurn(ctx); close(may) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, ListingTooLarge, c.Delayed())
		assert.Equal(t, []Delay{ListingTooLarge}, h.delayed, "one event")
		require.Len(t, logged.AllEntries(), 1, "one line in the log")
		assert.Contains(t, logged.LastEntry().Message, "ns/large-0 (")
		for i := range 16 {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprint(i))))
		}
		time.Sleep(lookEvery)
		synctest.Wait()
		assert.Equal(t, ListingTooLarge, c.Delayed(), "eight are too many as well")
		for i := 16; i < 21; i++ {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprint(i))))
		}
		<-may
		assert.Empty(t, c.Delayed())
	})
}

func TestTheDaemonRegistersWhereTheSizesAreNotKnown(t *testing.T) {
	t.Parallel()
	c, logged := aConnection()
	c.listing.dir = filepath.Join(t.TempDir(), "io.containerd.runtime.v2.task", "k8s.io")
	for range 3 {
		require.NoError(t, c.checkTurn(time.Now()))
	}
	require.Len(t, logged.AllEntries(), 1)
	assert.Contains(t, logged.LastEntry().Message, "the containers of the node are not known")
	assert.Nil(t, c.listing.containers())

	// Another containerd, such as Docker's, has its state there.
	other := filepath.Join(filepath.Dir(c.listing.dir), "moby")
	require.NoError(t, os.MkdirAll(other, 0o700))
	require.NoError(t, c.checkTurn(time.Now()))
	assert.Nil(t, c.listing.containers())

	// The runtime makes the folder with its first container after a boot.
	require.NoError(t, os.Remove(other))
	require.NoError(t, c.checkTurn(time.Now()))
	assert.Equal(t, "the containers of the node are known", logged.LastEntry().Message)
	of := c.listing.containers()
	assert.NotNil(t, of)
	assert.Empty(t, of)
}

// kubelet makes the folder where containerd keeps its state elsewhere, and it stays empty.
func TestADaemonInAContainerIsInTheFolderOfBundles(t *testing.T) {
	t.Parallel()
	for _, inContainer := range []bool{false, true} {
		c, logged := aConnection()
		c.listing.dir, c.listing.inContainer = t.TempDir(), inContainer
		stops := &apiServer{}
		c.options.Stops = stops
		require.NoError(t, c.checkTurn(time.Now()))
		assert.Equal(t, inContainer, stops.asked == nil, "then kubelet's report alone counts")
		if inContainer {
			require.Len(t, logged.AllEntries(), 1)
			err, _ := logged.LastEntry().Data[logrus.ErrorKey].(error)
			require.ErrorContains(t, err, "not even the daemon's")
		}
	}
}
