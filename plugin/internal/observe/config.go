package observe

import (
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// Configured is a configuration that is in force now. It is logged, and its generation is a metric, in the place of
// the generation of an earlier configuration.
type Configured struct {
	Name       string // empty if it has none
	Origin     string
	Generation int64
	Mode       v1alpha1.Mode
	Limits     string    // as [admin.ConfigText] describes them
	OffUntil   time.Time // the daemon is switched off until then; zero if it is not
}

func (e Configured) report(o *Observer) {
	o.metrics.generation.Reset()
	o.metrics.generation.WithLabelValues(e.Name, e.Origin).Set(float64(e.Generation))
	limits := e.Limits
	level, text := logrus.InfoLevel, "configuration in force: "+e.Name+": "
	switch {
	case !e.OffUntil.IsZero():
		level, text = logrus.WarnLevel, "switched off on this node until "+e.OffUntil.UTC().Format(time.RFC3339)+": no pod waits ('pod-pacemaker on' ends that)"
	case e.Name == "":
		text = "no configuration is in force: no pod waits"
	case e.Mode == v1alpha1.ModeEnforce:
		text += limits
	case e.Mode == v1alpha1.ModeDisabled:
		level, text = logrus.WarnLevel, text+"no pod waits, because the mode is Disabled"
	default:
		level, text = logrus.WarnLevel, text+limits+"; no pod waits, because the mode is Shadow"
	}
	o.log.WithFields(logrus.Fields{
		"config": e.Name, "origin": e.Origin, "generation": e.Generation, "mode": e.Mode, "limits": limits,
	}).Log(level, text)
}

// PolicyChanges are changes of StartPolicies. Faults are logged, and events on the node. The end of a fault,
// and the begin and the end of a temporary override, are only logged.
type PolicyChanges struct{ policies.Changes }

func (e PolicyChanges) report(o *Observer) {
	for name, fault := range e.Faults {
		o.log.WithFields(logrus.Fields{"policy": name, "reason": fault}).Warnf("StartPolicy %s cannot be evaluated, and holds no pod: %s", name, fault)
		o.onNode(corev1.EventTypeWarning, "PolicyNotEvaluated", "StartPolicy "+name+" holds no pod: "+fault)
	}
	for _, name := range e.Evaluated {
		o.log.WithField("policy", name).Infof("StartPolicy %s can be evaluated again", name)
	}
	for _, name := range e.Gone {
		o.log.WithField("policy", name).Infof("StartPolicy %s, which could not be evaluated, is gone", name)
	}
	for _, name := range e.Overridden {
		o.log.WithField("policy", name).Infof("a temporary override of StartPolicy %s began or ended", name)
	}
}

// ClusterPolicies says which policies of the scope Cluster hold no pod, because the API server cannot be used. It is
// logged, and an event on the node.
type ClusterPolicies struct {
	Open []string // the names of those policies; empty if all hold again
	Why  error    // nil if Open is empty
}

func (e ClusterPolicies) report(o *Observer) {
	if len(e.Open) == 0 {
		o.log.Info("the policies of the scope Cluster hold pods again")
		o.onNode(corev1.EventTypeNormal, "StartPoliciesClosed", "the StartPolicies of the scope Cluster hold again")
		return
	}
	names := strings.Join(e.Open, ", ")
	o.log.WithError(e.Why).Warnf("the API server cannot be used: the policies %s hold no pod", names)
	o.onNode(corev1.EventTypeWarning, "StartPoliciesOpened", "the StartPolicies "+names+" hold no pod: "+e.Why.Error())
}
