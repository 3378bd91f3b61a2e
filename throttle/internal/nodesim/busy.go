package nodesim

import "math/rand/v2"

// Busy gives a random node and a herd of pods that burn CPU, as the pods of Random do. Other work uses 60 to 95 % of
// the node. It goes first, so the herd gets what it leaves. The same seed gives the same.
func Busy(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 5))
	between := between(r)
	s := Scenario{Cores: []int{2, 4, 8, 16}[r.IntN(4)], Shuffled: true, Seed: seed}
	count := 1 + r.IntN(2*s.Cores)
	used := (0.6 + 0.35*r.Float64()) * float64(s.Cores)
	s.Running = []Kind{{Name: "running", Count: count, ServeCores: used / float64(count)}}
	for range 1 + r.IntN(3) {
		k := Kind{Name: "burner", Count: 4 * s.Cores, CPUSeconds: between(1, 12), Liveness: true}
		k.Patience = patience(k)
		s.Herd = append(s.Herd, k)
	}
	return s
}
