package cgroup

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The files have the form that kernels write.
const (
	serviceBytesFile = "254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 4096\n254:0 Async 8192\n254:0 Discard 0\n254:0 Total 12288\n" +
		"7:0 Read 512\n7:0 Total 512\nTotal 12800\n"
	ioStat = "254:16 rbytes=8192 wbytes=512 rios=2 wios=1 dbytes=4096 dios=1\n7:0 \n254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n"

	somePressure = "some avg10=0.00 avg60=1.25 avg300=0.40 total=2500000\n"
	pressure     = somePressure + "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		figure  figure
		content string
		want    float64
	}{
		"bytes of cgroup v1":                {serviceBytes, serviceBytesFile, 12800},
		"none yet, cgroup v1":               {serviceBytes, "Total 0\n", 0},
		"bytes of cgroup v2":                {deviceBytes, ioStat, 12800},
		"none yet, cgroup v2":               {deviceBytes, "", 0},
		"pressure":                          {pressureTotal, pressure, 2.5},
		"pressure of a kernel without full": {pressureTotal, somePressure, 2.5},
	} {
		got, err := c.figure.parse([]byte(c.content))
		require.NoError(t, err, name)
		require.InDelta(t, c.want, got, 1e-9, name)
	}
	for name, c := range map[string]struct {
		figure  figure
		content string
	}{
		"no total, cgroup v1":      {serviceBytes, "254:0 Read 4096\n"},
		"negative, cgroup v1":      {serviceBytes, "Total -1\n"},
		"no number, cgroup v2":     {deviceBytes, "254:0 rbytes=many wbytes=0\n"},
		"nothing, cgroup v2":       {deviceBytes, "254:0 rbytes\n"},
		"empty pressure":           {pressureTotal, ""},
		"pressure without a total": {pressureTotal, "some avg10=0.00\n"},
		"a total with a fraction":  {pressureTotal, "some avg10=0.00 total=0.5\n"},
	} {
		got, err := c.figure.parse([]byte(c.content))
		require.Error(t, err, name)
		require.Zero(t, got, name)
	}
}

// Any content of a kernel file gives a figure that is not negative, or an error.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{stat, "2500000000\n", "usage_usec 18446744073709551616\n", "usage_usec\n", "-1", "1e3", "", serviceBytesFile, ioStat, pressure} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, figure := range []figure{cpuUsage, cpuStat, pressureTotal, serviceBytes, deviceBytes} {
			got, err := figure.parse(content)
			if got < 0 || (err != nil && got != 0) {
				t.Fatalf("%q gave %v, %v", content, got, err)
			}
		}
	})
}
