//go:build e2e && full

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// wholeLimit is how many pods of a whole mixed herd start at a time: half of the kinds idle in their starts, so that two
// for each core would leave the node idle. mixedRatio is how much longer it may take by default than unpaced.
const (
	wholeLimit = 8
	mixedRatio = 1.2
)

// A whole mixed herd: without a daemon, with a default one, and with one that has no waiting room.
func TestAMixedHerdWaitsQuietly(t *testing.T) {
	runs := map[string]time.Duration{}
	for _, use := range []string{"unpaced", "auto", "off"} {
		t.Run(use, func(t *testing.T) {
			if use != "unpaced" {
				removeRoomLater(t)
				d := startDaemon(t, roomArgs(use)...)
				d.configure(t, fmt.Sprintf("{throttleConfig: {maxConcurrent: {value: %d}}}", wholeLimit))
				if use == "auto" {
					d.awaitRoom(t)
				}
			}
			before := readMachine(t)
			r := runMixed(t, mixedKinds, 1)
			runs[use] = r.took
			figure(t, "%s: %s; %.2f x the time unpaced; %s", use, r, r.took.Seconds()/runs["unpaced"].Seconds(), before.since(t))
			if use == "auto" {
				r.assertQuiet(t)
				assert.LessOrEqual(t, r.took.Seconds(), mixedRatio*runs["unpaced"].Seconds(), "seconds until all are ready or ended")
			}
		})
	}
}
