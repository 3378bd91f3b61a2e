package cgroup

import (
	"fmt"
	"regexp"
	"strconv"
)

// figure is the format of a figure in a file of the kernel.
type figure struct {
	number *regexp.Regexp // its group is a number; the figure is the sum of all matches
	unit   float64        // the number that stands for 1
	none   bool           // without a number the figure is 0
}

var (
	// cpuacct.usage is one number, nanoseconds.
	cpuUsage = figure{number: regexp.MustCompile(`^\s*(\S*)`), unit: 1e9}
	// cpu.stat has lines of a name and a number. The number of usage_usec is in microseconds.
	cpuStat = figure{number: regexp.MustCompile(`(?m)^usage_usec (\S*)`), unit: 1e6}
	// cpu.pressure has a line "some" with averages and a total in microseconds.
	pressureTotal = figure{number: regexp.MustCompile(`(?m)^some .*\btotal=(\S*)`), unit: 1e6}
	// blkio.throttle.io_service_bytes_recursive has a line for each device and kind of I/O, and at the end their total.
	serviceBytes = figure{number: regexp.MustCompile(`(?m)^Total (\S*)`), unit: 1}
	// io.stat has a line for each device, with a number for each kind of I/O. It is empty as long as there was none.
	deviceBytes = figure{number: regexp.MustCompile(`\b[rw]bytes=?(\S*)`), unit: 1, none: true}
)

func (f figure) parse(content []byte) (sum float64, err error) {
	found := f.number.FindAllSubmatch(content, -1)
	if len(found) == 0 && !f.none {
		return 0, fmt.Errorf("nothing like %s", f.number)
	}
	for _, match := range found {
		n, err := strconv.ParseUint(string(match[1]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", match[0], err)
		}
		sum += float64(n)
	}
	return sum / f.unit, nil
}
