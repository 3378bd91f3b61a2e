package policies

import (
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Compiled are policies that are ready to be evaluated. The zero value is none. It is immutable.
type Compiled struct {
	inForce  []*v1alpha1.StartPolicy
	policies []*startpolicy.Policy // those that can be evaluated
	faults   map[string]string     // why the others cannot, by name
}

// Compile compiles policies, which must not be changed afterwards. It logs the overrides that it leaves out.
// It may take long, so no lock should be held.
func Compile(inForce []*v1alpha1.StartPolicy, log logrus.FieldLogger) Compiled {
	c := Compiled{inForce: inForce, faults: map[string]string{}}
	for _, one := range inForce {
		policy, errs := startpolicy.Compile(one)
		if len(errs) > 0 {
			c.faults[one.Name] = errs.ToAggregate().Error()
			continue
		}
		for _, o := range policy.Invalid() {
			log.WithFields(logrus.Fields{"policy": one.Name, "field": o.Path}).Warn("a temporary override of the StartPolicy is left out: " + o.Message)
		}
		c.policies = append(c.policies, policy)
	}
	return c
}
