package nodesim

import "math/rand/v2"

// Broad gives a random node and herd that is harder to pace than what Random gives. It differs from Random in four
// ways. Pods wait for up to a minute, and half of those burn CPU afterwards, as a pod does that waits for its database.
// Running pods use up to 60 % of the node. Reading takes up to 10 seconds, on a disk that may have a stream for only
// every fourth core. Half of the herds come kind after kind, so that the pods that wait hide the pods that burn.
func Broad(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 4))
	between := between(r)
	s := Scenario{Cores: []int{2, 4, 8, 16}[r.IntN(4)], Shuffled: r.IntN(2) == 0, Seed: seed}
	s.DiskStreams = float64(s.Cores) * between(0.25, 4)
	if steady := 0.6 * r.Float64() * float64(r.IntN(2)); steady > 0 {
		count := 1 + r.IntN(2*s.Cores)
		s.Running = []Kind{{Name: "running", Count: count, ServeCores: steady * float64(s.Cores) / float64(count)}}
	}
	pods, kinds := s.Cores*(8+r.IntN(9)), 1+r.IntN(4)
	for i := range kinds {
		k := randomKind(r)
		switch r.IntN(4) {
		case 0:
			k = Kind{Name: "sleeper", CPUSeconds: 0.2, Wait: between(1.5, 60)}
			if r.IntN(2) == 0 {
				k.CPUSeconds = between(0.5, 6)
			}
		case 1:
			k = Kind{Name: "reader", CPUSeconds: between(0.5, 6), IOSeconds: between(0.3, 10)}
		}
		k.Liveness, k.Patience = true, patience(k)
		k.Count = max(1, pods*(i+1)/kinds-pods*i/kinds)
		k.ServeCores = min(k.ServeCores, 0.2*float64(s.Cores)/float64(k.Count)/float64(kinds))
		s.Herd = append(s.Herd, k)
	}
	return s
}
