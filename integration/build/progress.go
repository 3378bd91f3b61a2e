package build

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress receives the progress of builds.
type Progress interface {
	// Step reports that done of total parts of the named build are finished. total 0 means that the
	// number is not known yet, and done == total that the build is over. The steps of one build come
	// in order, one call at a time.
	Step(name string, done, total int)
}

// plainEvery is the least time between two lines about the same build.
const plainEvery = 10 * time.Second

// PlainProgress writes lines for a log: one when a build begins, one when it ends, and some in
// between. It is safe for concurrent use.
func PlainProgress(w io.Writer) Progress {
	return &plain{out: w, now: time.Now, started: map[string]time.Time{}, last: map[string]time.Time{}}
}

type plain struct {
	mu      sync.Mutex
	out     io.Writer
	now     func() time.Time
	started map[string]time.Time
	last    map[string]time.Time
}

func (p *plain) Step(name string, done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	start, begun := p.started[name]
	switch {
	case !begun:
		p.started[name], p.last[name] = now, now
		if done < total || total == 0 {
			fmt.Fprintf(p.out, "building %s\n", name)
		}
	case total > 0 && done >= total:
		fmt.Fprintf(p.out, "building %s: done in %s\n", name, now.Sub(start).Round(time.Second))
		delete(p.started, name)
	case now.Sub(p.last[name]) >= plainEvery && total > 0:
		p.last[name] = now
		fmt.Fprintf(p.out, "building %s: %d of %d packages\n", name, done, total)
	}
}
