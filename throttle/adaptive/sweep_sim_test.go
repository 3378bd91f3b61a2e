//go:build sim

package adaptive_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/internal/nodesim"
)

var sweepAnew = flag.Bool("sweep", false, "sweep the fixed limits of every random herd anew, and write testdata")

// checkEvery is how many herds there are to one whose sweep is made again, to see
// that the file is not out of date.
const checkEvery = 20

// swept is the best fixed limit of each herd of a stream, and its makespan. It is
// kept in a file, since to find them takes ten times as long as all the rest.
type swept struct {
	Makespan []float64
	Limit    []int
	file     string
}

func readSweep(t *testing.T, stream string) *swept {
	t.Helper()
	known := &swept{file: "testdata/" + stream + ".json"}
	if *sweepAnew {
		return known
	}
	data, err := os.ReadFile(known.file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, known))
	return known
}

// of gives the makespan of the i-th herd at the best fixed limit, and that limit.
// Herds come in their order.
func (k *swept) of(t *testing.T, i int, s nodesim.Scenario) (makespan float64, limit int) {
	t.Helper()
	if *sweepAnew {
		makespan, limit = bestFixed(s)
		k.Makespan, k.Limit = append(k.Makespan, makespan), append(k.Limit, limit)
		return makespan, limit
	}
	if i%checkEvery == 0 {
		makespan, limit = bestFixed(s)
		assert.InEpsilon(t, makespan, k.Makespan[i], 1e-6, "herd %d: %s is out of date: go test -tags sim -run Random -sweep", i, k.file)
		assert.Equal(t, limit, k.Limit[i])
	}
	return k.Makespan[i], k.Limit[i]
}

func (k *swept) write(t *testing.T) {
	t.Helper()
	if !*sweepAnew {
		return
	}
	data, err := json.Marshal(k)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(k.file, append(data, '\n'), 0o600))
}

// bestFixed gives the shortest makespan that a fixed limit makes without a kill, with no slot empty while a pod waits,
// and that limit; of a herd that no limit starts without one, an infinite time.
func bestFixed(s nodesim.Scenario) (makespan float64, limit int) {
	makespan, killed := math.Inf(1), math.MaxInt
	for _, l := range []int{8, 16, 32, 64, 128, 256, 24, 12, 6, 4, 3, 2, 1, 48, 96, 192} {
		if l > killed || l > 2*s.Pods() {
			continue // kills, or holds no pod, as a lesser one did
		}
		r := nodesim.Run(s, nodesim.Pacing{
			Limiter:    throttle.New(time.Now(), settings(throttle.Settings{MaxConcurrent: l})),
			StopAtKill: true, StopAfter: makespan,
		})
		switch {
		case r.Kills > 0:
			killed = l
		case r.Makespan < makespan:
			makespan, limit = r.Makespan, l
		}
	}
	return makespan, limit
}
