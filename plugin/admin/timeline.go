package admin

import (
	"slices"
	"sync"
	"time"
)

// Span and resolution of a [Timeline].
const (
	TimelineSpan  = 10 * time.Minute
	TimelineEvery = 2 * time.Second
)

// Point is the state of the node at one moment.
type Point struct {
	Time time.Time `json:"time"`
	// Waiting is the length of the queue. Starting is the number of starts that hold a slot. Slots is the limit of
	// them; 0 means no limit.
	Waiting  int `json:"waiting"`
	Starting int `json:"starting"`
	Slots    int `json:"slots"`
	// CPU is the share of CPU time in use. The others are the share of time in which some process waited for the
	// resource. All are in percent, and absent if not measured.
	CPU            *float64 `json:"cpu,omitempty"`
	CPUPressure    *float64 `json:"cpuPressure,omitempty"`
	MemoryPressure *float64 `json:"memoryPressure,omitempty"`
	IOPressure     *float64 `json:"ioPressure,omitempty"`
}

// Timeline keeps the points of the last TimelineSpan if one is added every TimelineEvery. The zero value is empty. It
// is safe for concurrent use.
type Timeline struct {
	mu     sync.Mutex
	points []Point
}

// Add adds a point. It drops the oldest if the timeline is full.
func (t *Timeline) Add(p Point) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.points = append(t.points, p)
	t.points = t.points[max(0, len(t.points)-int(TimelineSpan/TimelineEvery)):]
}

// Points returns a copy of the points, the oldest first.
func (t *Timeline) Points() []Point {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.points)
}
