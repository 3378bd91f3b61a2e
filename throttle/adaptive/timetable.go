package adaptive

import "math"

// parts is into how many parts a timetable divides the future that it covers.
const parts = 256

// timetable says how much of a resource is given away: CPU-seconds, or bytes from the disk, in each part of the future.
type timetable struct {
	part  float64 // seconds
	given [parts]float64
}

// index returns in which part a time is, or the last part.
func (t *timetable) index(time float64) int {
	if !(time < t.part*parts) {
		return parts - 1
	}
	return int(time / t.part)
}

// give gives a start work units of the resource from a time on, each as soon as those before it leave any of rate units a
// second, and at most most a second. It returns when the start has all, in seconds; +Inf: after the end of the timetable.
func (t *timetable) give(from, work, most, rate float64) (end float64) {
	most = min(most, rate)
	if !(from < t.part*parts) {
		return from + work/most // nothing is given away then
	}
	end = from
	for i := t.index(from); work > nothing; i++ {
		if i == parts {
			return math.Inf(1)
		}
		begin := max(from, float64(i)*t.part)
		give := min(work, rate*t.part-t.given[i], most*(float64(i+1)*t.part-begin))
		if give > nothing {
			t.given[i] += give
			work, end = work-give, begin+give/most
		}
	}
	return end
}
