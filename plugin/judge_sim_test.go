//go:build sim

package plugin

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// The judge must be able to say no. A judge that believes something else than what is so finds that rules are broken: all but
// runtimeLives and nothingLeft, for which the runtime would have to end, and the bubble could not.
func TestTheJudgeSaysNo(t *testing.T) {
	t.Parallel()
	said := func(change func(*shapes.Shape)) func(*judge) {
		return func(j *judge) {
			j.shape = j.shape.Clone()
			change(j.shape)
		}
	}
	pods := func(change func(i int, p *shapes.Pod)) func(*judge) {
		return said(func(s *shapes.Shape) {
			for i := range s.Pods {
				change(i, &s.Pods[i])
			}
		})
	}
	for _, belief := range []struct {
		breaks []string
		change func(*shapes.Shape)
		misled func(*judge)
	}{
		{[]string{signalKept, limitKept, rateKept, writesLittle}, nil, func(j *judge) {
			j.inForce[0].Most, j.inForce[0].Concurrent, j.inForce[0].FillFactor, j.written = 10, 7, time.Minute, 1<<20
		}},
		{[]string{noneHeldIdle}, nil, func(j *judge) { j.inForce[0].Concurrent = 16 }},
		{[]string{debtKept}, nil, func(j *judge) {
			j.inForce[0].Signal, j.inForce[0].Most, j.inForce[0].Increment = throttle.SignalLoad, 3, 1
		}},
		{[]string{orderKept}, nil, pods(func(_ int, p *shapes.Pod) { p.Priority = -p.Priority })},
		{[]string{orderKept}, func(s *shapes.Shape) { s.Limits.AdaptiveMin = 8 }, pods(func(_ int, p *shapes.Pod) { p.Priority = -p.Priority })},
		{[]string{saysSame}, func(s *shapes.Shape) { s.Pods = s.Pods[:8]; s.Pods[0].Ready = time.Minute }, pods(func(_ int, p *shapes.Pod) { p.Namespace = "b" })},
		{[]string{fairKept}, nil, pods(func(i int, p *shapes.Pod) { p.Namespace = []string{"a", "b"}[i%2] })},
		{[]string{everyPodRuns, runtimeBears}, nil, said(func(s *shapes.Shape) { s.Pods[3].Crashes, s.Containerd = 20, "v2.2.5" })},
		{[]string{failsInGate, runningKept}, nil, func(j *judge) {
			pods(func(_ int, p *shapes.Pod) { p.Policy, p.Grouped = corev1.RestartPolicyNever, true })(j)
			j.shape.Running = 1
		}},
		{[]string{exemptStarts, waitsBounded, deletedLeaves, noErrorLogged}, nil, func(j *judge) {
			pods(func(_ int, p *shapes.Pod) { p.Namespace = "kube-system" })(j)
			j.shape.RequestTimeout = time.Second
			j.afterwards(40*time.Second, func(p *podSeen) { p.deleted = time.Now() })
			_ = j.Fire(&logrus.Entry{Message: "an error"})
		}},
		{[]string{turnKept}, func(s *shapes.Shape) {
			s.Room, s.Limits.Concurrent, s.Pods = true, 1, s.Pods[:10]
			for i := range s.Pods {
				s.Pods[i].Ready = time.Minute
			}
		}, func(j *judge) { j.afterwards(time.Minute, func(p *podSeen) { p.left = p.room }) }},
		{[]string{showsNoFault, countsNoRuns}, func(s *shapes.Shape) {
			s.Limits, s.Faults = shapes.Limits{Concurrent: 2, MaxWait: time.Hour}, nil
			for i := 50; i < len(s.Pods); i++ {
				s.Pods[i].Ready, s.Pods[i].Priority = 3*time.Minute, 1
				s.Pods[i].At = time.Minute
			}
		}, func(j *judge) { j.documented = "" }},
		{[]string{comesBack, noSlotIdle}, func(s *shapes.Shape) { s.Limits, s.Faults = shapes.Limits{Concurrent: 2}, nil }, func(j *judge) {
			j.shape = j.shape.Clone()
			j.shape.Limits.Concurrent = 100
			var err error
			j.runtime, err = runtimetest.New(runtimetest.Options{Dir: t.TempDir(), InMemory: true, Hook: func(context.Context, []string) (int, string) { return 0, "" }})
			require.NoError(t, err)
		}},
		{[]string{limitKept}, func(s *shapes.Shape) {
			s.Limits, s.Faults = shapes.Limits{Concurrent: 1}, nil
			for i := range s.Pods { // each start does nothing for a minute
				s.Pods[i].Inits, s.Pods[i].Pull = []time.Duration{time.Second}, time.Minute
			}
		}, func(j *judge) { j.inForce[0].NoLoans = true }},
	} {
		t.Run(strings.Join(belief.breaks, ", "), func(t *testing.T) {
			t.Parallel()
			s := smallHerd()
			s.Limits.Signal, s.Limits.Most = throttle.SignalMemoryPressure, 90
			s.Faults = []shapes.Fault{{Kind: shapes.NodeIsBusy, Gap: time.Hour, Load: shapes.Load{Memory: 30}}}
			if belief.change != nil {
				belief.change(s)
			}
			seen := runShape(t, s, belief.misled)
			for _, rule := range belief.breaks {
				assert.True(t, slices.ContainsFunc(seen.complaints, func(c complaint) bool { return c.rule == rule }), "%s: %v", rule, seen.complaints)
			}
		})
	}
}

// afterwards changes what the judge knows of the pods that wait in the gate or in the waiting room, after a time.
func (j *judge) afterwards(d time.Duration, change func(*podSeen)) {
	time.AfterFunc(d, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, p := range j.pods {
			if !p.gate.IsZero() || !p.room.IsZero() {
				change(p)
			}
		}
	})
}
