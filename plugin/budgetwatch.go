package plugin

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
)

// watchBudget says when the handlers break their budget and when they keep it
// again, until ctx ends. It has a timer only while the budget is broken.
func (p *pacer) watchBudget(ctx context.Context) error {
	said := budgetKept
	for {
		stage, use, again := p.budget.judge(time.Now())
		if stage != said {
			said = stage
			p.tellBudget(stage, use)
		}
		var timer <-chan time.Time
		if !again.IsZero() {
			timer = time.After(time.Until(again))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.budget.changed:
		case <-timer:
		}
	}
}

func (p *pacer) tellBudget(stage budgetStage, use handlerUse) {
	p.metrics.budgetStage.Set(float64(stage))
	log := p.log.WithFields(logrus.Fields{
		"handler_p99_ms": use.p99.Milliseconds(), "handler_share": use.share, "stage": stage.String(),
	})
	switch stage {
	case budgetKept:
		log.Info("the handlers keep their budget again: pods are held and refused as before")
		p.notices.node(corev1.EventTypeNormal, "HandlersInBudget", "NRI handlers are fast enough again: pods are held and refused as before")
	case holdsStopped:
		log.Warn("the handlers are too slow for the runtime: nobody is held in them any more")
		p.notices.node(corev1.EventTypeWarning, "HandlersTooSlow", "NRI handlers are too slow for the container runtime: pods are not held in them for now")
	case refusalsStopped:
		log.Warn("the handlers are too slow for the runtime: nothing is refused any more but what a policy's running limit holds, and what cannot wait in the gate starts unpaced")
		p.notices.node(corev1.EventTypeWarning, "HandlersTooSlow", "NRI handlers are too slow for the container runtime: pods are not refused for now but where the running limit of a StartPolicy holds them, those that cannot wait in the gate start unpaced")
	}
}
