package report

import "github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"

// tally sums up the reports of the nodes as they arrive. It keeps none of them: those of a large cluster do not fit into
// the memory of the daemon.
type tally struct {
	nodes    int
	policies []*policySum
	configs  []*configSum
	room     int // how many groups may still be kept, of all policies
}

func newTally(of Summed) *tally {
	t := &tally{room: mostGroupsSummed}
	for _, policy := range of.Policies() {
		t.policies = append(t.policies, newPolicySum(policy))
	}
	for _, config := range of.Configs() {
		t.configs = append(t.configs, newConfigSum(config))
	}
	return t
}

// add adds the report of a node.
func (t *tally) add(n v1alpha1.PacemakerNodeStatus) {
	t.nodes++
	for _, p := range t.policies {
		p.add(n, &t.room)
	}
	for _, c := range t.configs {
		c.add(n)
	}
}
