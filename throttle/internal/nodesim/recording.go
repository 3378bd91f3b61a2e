package nodesim

import (
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed testdata/*.json
var testdata embed.FS

// Recording is a herd on a real node, written by integration/e2e's TestRecord. Times and counters are seconds since
// the herd was created.
type Recording struct {
	Name, Kernel string
	Cores        int
	// Limit is the number of starts at a time; 0 if the herd was not paced.
	Limit         int
	Running, Herd []Kind
	Pods          []Life
	Samples       []struct {
		At, Busy, Idle, IOWait, CPUSome, IOSome, IOFull float64
		Starting                                        int
	}
}

// Recorded gives the recording of that name.
func Recorded(name string) (Recording, error) {
	data, err := testdata.ReadFile("testdata/" + name + ".json")
	if err != nil {
		return Recording{}, err
	}
	var r Recording
	if err := json.Unmarshal(data, &r); err != nil {
		return Recording{}, fmt.Errorf("recording %s: %w", name, err)
	}
	return r, nil
}

// Scenario is what was recorded. The Deployments of a herd were created at once, so their pods came in no particular
// order.
func (r Recording) Scenario(seed uint64) Scenario {
	return Scenario{Cores: r.Cores, Running: r.Running, Herd: r.Herd, Shuffled: true, Seed: seed}
}

// Makespan is when the last pod was ready.
func (r Recording) Makespan() (last float64) {
	for _, p := range r.Pods {
		last = max(last, p.Ready)
	}
	return last
}

// Pressure is the mean CPU pressure from the first start until the last pod was
// ready, percent; CPU is how busy the CPUs were.
func (r Recording) Pressure() (cpuSome, cpu float64) {
	first := r.Makespan()
	for _, p := range r.Pods {
		first = min(first, p.Started)
	}
	begin, end := r.Samples[0], r.Samples[0]
	for _, s := range r.Samples {
		if s.At <= first {
			begin = s
		}
		if s.At <= r.Makespan() {
			end = s
		}
	}
	past := end.At - begin.At
	return 100 * (end.CPUSome - begin.CPUSome) / past, 100 * (end.Busy - begin.Busy) / past / float64(r.Cores)
}
