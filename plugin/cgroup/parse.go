package cgroup

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// parseUsage reads cpuacct.usage: one number, nanoseconds.
func parseUsage(content []byte) (float64, error) {
	ns, err := number(content)
	return ns / 1e9, err
}

// parseStat reads cpu.stat: lines of a name and a number, of which usage_usec is in microseconds.
func parseStat(content []byte) (float64, error) {
	us, err := numberAfter(content, "usage_usec ")
	return us / 1e6, err
}

// parsePressure reads cpu.pressure: a line "some" with averages and a total in microseconds.
func parsePressure(content []byte) (float64, error) {
	for line := range bytes.Lines(content) {
		if _, total, ok := bytes.Cut(line, []byte(" total=")); ok && bytes.HasPrefix(line, []byte("some ")) {
			us, err := number(total)
			return us / 1e6, err
		}
	}
	return 0, fmt.Errorf("%w: no total of some", ErrParse)
}

// parseServiceBytes reads blkio.throttle.io_service_bytes_recursive: a line for each device and kind of I/O, and at the
// end their total.
func parseServiceBytes(content []byte) (float64, error) { return numberAfter(content, "Total ") }

// parseIOStat reads io.stat: a line for each device, with a number for each kind of I/O. It is empty as long as there
// was none.
func parseIOStat(content []byte) (float64, error) {
	var sum float64
	for field := range bytes.FieldsSeq(content) {
		kind, value, _ := bytes.Cut(field, []byte("="))
		if string(kind) != "rbytes" && string(kind) != "wbytes" {
			continue
		}
		n, err := number(value)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", kind, err)
		}
		sum += n
	}
	return sum, nil
}

// numberAfter returns the number on the line that begins like this.
func numberAfter(content []byte, begin string) (float64, error) {
	for line := range bytes.Lines(content) {
		if value, ok := bytes.CutPrefix(line, []byte(begin)); ok {
			n, err := number(value)
			if err != nil {
				err = fmt.Errorf("%s: %w", strings.TrimSpace(begin), err)
			}
			return n, err
		}
	}
	return 0, fmt.Errorf("%w: no %s", ErrParse, strings.TrimSpace(begin))
}

func number(text []byte) (float64, error) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrParse, err)
	}
	return float64(n), nil
}
