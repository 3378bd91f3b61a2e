package nodesim

import (
	"math"
	"math/rand/v2"
)

// Random gives a random node and herd. The same seed gives the same.
//
// Liveness probes are as tight as an administrator sets them who measured one start alone. They kill a pod that takes
// more than four times as long, and more than 20 seconds.
//
// The ranges describe services on nodes of 2 to 16 cores. There are 8 to 16 pods for each core (kubelet allows 110 pods
// on a node), of up to four kinds, in a random order. They burn 1 to 12 seconds of CPU, or wait for others for up to 10
// seconds, or read for up to 4. The running pods of a node use up to 40 % of it. One herd in eight only waits, for up
// to 40 seconds.
func Random(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 3))
	s := Scenario{Cores: []int{2, 4, 8, 16}[r.IntN(4)], Shuffled: true, Seed: seed}
	s.DiskStreams = float64(s.Cores) * []float64{0.5, 1, 2, 4}[r.IntN(4)]
	steady := 0.4 * r.Float64() * float64(r.IntN(2)) // share of the node, before and after the herd
	if steady > 0 {
		k := Kind{Name: "running", Count: 1 + r.IntN(2*s.Cores)}
		k.ServeCores = steady * float64(s.Cores) / float64(k.Count)
		s.Running = []Kind{k}
	}
	pods, kinds := s.Cores*(8+r.IntN(9)), 1+r.IntN(4)
	idle := r.IntN(8) == 0
	for i := range kinds {
		k := randomKind(r)
		if idle {
			k = Kind{Name: "sleeper", CPUSeconds: 0.2, Wait: 5 + 35*r.Float64(), Liveness: true}
			k.Patience = patience(k)
		}
		k.Count = max(1, pods*(i+1)/kinds-pods*i/kinds)
		k.ServeCores = min(k.ServeCores, 0.2*float64(s.Cores)/float64(k.Count)/float64(kinds))
		s.Herd = append(s.Herd, k)
	}
	return s
}

func randomKind(r *rand.Rand) Kind {
	between := between(r)
	var k Kind
	switch r.IntN(8) {
	case 0, 1, 2:
		k = Kind{Name: "burner", CPUSeconds: between(1, 12)}
	case 3, 4:
		k = Kind{Name: "server", CPUSeconds: between(1, 6), ServeCores: 0.1 * r.Float64()}
	case 5:
		k = Kind{Name: "sleeper", CPUSeconds: 0.2, Wait: between(1.5, 10)}
	case 6:
		k = Kind{Name: "limited", CPUSeconds: between(0.5, 2), CPULimit: between(0.2, 0.5)}
	default:
		k = Kind{Name: "reader", CPUSeconds: between(0.5, 4), IOSeconds: between(0.3, 4)}
	}
	k.Liveness, k.Patience = true, patience(k)
	return k
}

// between draws from a range, small values as often as great ones.
func between(r *rand.Rand) func(low, high float64) float64 {
	return func(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }
}

// alone is how long the start of a pod takes on an idle node.
func (k Kind) alone() float64 {
	burn := k.CPUSeconds
	if k.CPULimit > 0 {
		burn /= min(1, k.CPULimit)
	}
	return k.LoadSeconds + k.Wait + k.IOSeconds + burn
}

// patience is the time after which a liveness probe kills a pod.
func patience(k Kind) float64 { return max(20, 4*k.alone()) }
