package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestHeldSaysWhatWasMeasured(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]throttle.Held{
		"2 of 2 starting":                 {Reason: reasons.Concurrency, Measured: 2, Threshold: 2},
		"next start in 1.5s, one per 10s": {Reason: reasons.Rate, Measured: 1.5, Threshold: 10},
		"3 ahead":                         {Reason: reasons.Queued, Measured: 3},
		"it is next":                      {Reason: reasons.Queued},
		"5 pods before it or near their turn, 5 allowed":                                                                    {Reason: reasons.GateFull, Measured: 5, Threshold: 5},
		"2 pods before it or near their turn, 0 allowed: no start has ended yet, so nothing is known of how long they take": {Reason: reasons.GateFull, Measured: 2, NoneEnded: true},
		"3 of 3 pulling images":                                 {Reason: reasons.Pulling, Measured: 3, Threshold: 3},
		"pressure.cpu.some 83% of 60%":                          {Reason: reasons.Pressure, Signal: throttle.SignalCPUPressure, Measured: 83, Threshold: 60},
		"pressure.io.full 12% of 7.5%":                          {Reason: reasons.Pressure, Signal: throttle.SignalIOFull, Measured: 12, Threshold: 7.5},
		"cpu 91% of 80%":                                        {Reason: reasons.CPULoad, Signal: throttle.SignalCPU, Measured: 91, Threshold: 80},
		"iowait 9% and 10% for starts not measured yet of 15%":  {Reason: reasons.IOLoad, Signal: throttle.SignalIOWait, Measured: 19, Owed: 10, Threshold: 15},
		"load 3.25 of 3":                                        {Reason: reasons.LoadAverage, Signal: throttle.SignalLoad, Measured: 3.25, Threshold: 3},
		"load 2.25 and 1.00 for starts not measured yet of 3":   {Reason: reasons.LoadAverage, Signal: throttle.SignalLoad, Measured: 3.25, Owed: 1, Threshold: 3},
		"no limit holds it, but kubelet has not retried it yet": {Reason: reasons.NotPresent},
		"next start in 334ms, one per 1m0.5s":                   {Reason: reasons.Rate, Measured: 0.33351, Threshold: 60.5},
		"kube-system/agent is not ready":                        {Reason: reasons.StartAfter, For: "kube-system/agent", Measured: 60, Threshold: 120},
		"kube-system/agent, vault (app=a,tier=b) are not ready": {Reason: reasons.StartAfter, For: "kube-system/agent, vault (app=a,tier=b)"},
		"": {},
	} {
		require.Equal(t, want, HeldText(h), "%+v", h)
	}
}
