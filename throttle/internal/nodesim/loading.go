package nodesim

import "math/rand/v2"

// Loading gives a random node and herd as Broad does, whose pods load their programs from the disk first, 2 to 200 MB
// each, as nearly every pod does after a reboot.
func Loading(seed uint64) Scenario {
	s, between := Broad(seed), between(rand.New(rand.NewPCG(seed, 7)))
	for i := range s.Herd {
		k := &s.Herd[i]
		k.LoadSeconds = between(0.02, 2)
		k.Patience = patience(*k)
	}
	return s
}
