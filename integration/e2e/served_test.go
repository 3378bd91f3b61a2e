//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

const (
	// askedEvery is the time between two requests to the pod that serves, and answerCPU what each answer takes of a CPU.
	askedEvery, answerCPU = 50 * time.Millisecond, 5 * time.Millisecond
	// askedAlone is for how long the pod serves alone.
	askedAlone = 20 * time.Second
	// answerTimeout is the time after which a request is an error.
	answerTimeout = 10 * time.Second
	// tolerableFelt bounds the 99th percentile beside a paced herd, as a ratio to that beside the same herd unpaced.
	tolerableFelt = 0.5
)

// What a served pod feels: 16 pods start beside one that answers 20 requests a second, of 5 ms of work each. At a limit
// of two, and with adaptive, the slowest hundredth of its answers takes at most half as long as beside the unpaced herd.
func TestAServedPodFeelsLess(t *testing.T) {
	ns := namespace(t)
	createPod(t, ns, "served", herdPod(0, answering))
	eventually(t, "the pod serves", func() bool { return allReady(t, ns, 1) })
	address := net.JoinHostPort(pods(t, ns)[0].Status.PodIP, "8080")
	repeated(t, func(t *testing.T) string {
		alone := ask(t, address)
		after(t.Context(), askedAlone)
		figured(t, "alone", alone())

		var unpaced felt
		discarded := ""
		for _, way := range []struct{ name, config string }{
			{"unpaced", ""},
			{"at a limit of two", "{throttleConfig: {maxConcurrent: {value: 2}}}"},
			{"adaptive", "{throttleConfig: {adaptive: {}}}"},
		} {
			require.True(t, t.Run(way.name, func(t *testing.T) {
				if way.config != "" {
					startDaemonWithRoom(t).configure(t, way.config)
				}
				beside := ask(t, address)
				h := herdIn(t, namespace(t))
				f := beside()
				figured(t, fmt.Sprintf("beside a herd, %s, all ready after %.1f s", way.name, h.took().Seconds()), f)
				assert.False(t, h.late, "the herd is ready")
				if way.config == "" {
					unpaced = f
					return
				}
				assert.Zero(t, f.failed, "requests without an answer")
				ratio := f.percentile(99).Seconds() / unpaced.percentile(99).Seconds()
				figure(t, "%s: p99 is %.2f of the unpaced one (bound %.2f)", way.name, ratio, tolerableFelt)
				if cause := above("p99 as a ratio", ratio, tolerableFelt); cause != "" && h.machine.share() > tolerableForeign {
					discarded = cause
					return
				}
				assert.LessOrEqual(t, ratio, tolerableFelt, "p99 as a ratio to that beside the unpaced herd")
			}))
		}
		return discarded
	})
}

// answering makes the pod work for each answer.
func answering(spec *corev1.PodSpec) {
	spec.Containers[0].Args = append(spec.Containers[0].Args, "--answer", answerCPU.String())
}

// felt is what somebody felt who asked a pod over and over.
type felt struct {
	took   []time.Duration // of each answer, in ascending order
	failed int
}

// percentile returns the time within which that part of the answers came, in percent.
func (f felt) percentile(part int) time.Duration {
	return f.took[min(len(f.took)*part/100, len(f.took)-1)]
}

// figured notes what was felt.
func figured(t *testing.T, when string, f felt) {
	t.Helper()
	require.NotEmpty(t, f.took, "answers %s", when)
	figure(t, "%s: of %d answers p50 %.0f ms, p99 %.0f ms, slowest %.0f ms; %d without an answer", when, len(f.took),
		1000*f.percentile(50).Seconds(), 1000*f.percentile(99).Seconds(), 1000*f.percentile(100).Seconds(), f.failed)
}

// ask sends requests to a pod, each at its time, however long others take. The returned function ends that, and waits for
// the last answer.
func ask(t *testing.T, address string) func() felt {
	t.Helper()
	client := http.Client{Timeout: answerTimeout, Transport: &http.Transport{DialContext: dialInNode, MaxIdleConnsPerHost: 1000}}
	ctx, cancel := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	var mu sync.Mutex
	var f felt // guarded by mu
	asked.Go(func() {
		for at := time.Now(); ctx.Err() == nil; at = at.Add(askedEvery) {
			after(ctx, time.Until(at))
			asked.Go(func() {
				begin := time.Now()
				err := get(client, "http://"+address)
				took := time.Since(begin)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					f.failed++
					t.Logf("no answer after %v: %v", took, err)
					return
				}
				f.took = append(f.took, took)
			})
		}
	})
	end := sync.OnceValue(func() felt {
		cancel()
		asked.Wait()
		client.CloseIdleConnections()
		slices.Sort(f.took)
		return f
	})
	t.Cleanup(func() { end() })
	return end
}

func get(client http.Client, url string) error {
	reply, err := client.Get(url) //nolint:noctx // the client has a time-out, and an answer under way counts
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %s", reply.Status)
	}
	return nil
}

// dialInNode connects from the node's network, which has the way to the pods.
func dialInNode(ctx context.Context, network, address string) (net.Conn, error) {
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", node.Kubelet.PID()))
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled)
	go func() {
		// The thread ends with this goroutine, which does not unlock it: no other one gets into the node's network.
		runtime.LockOSThread()
		if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- dialled{err: fmt.Errorf("entering the node's network: %w", err)}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		done <- dialled{conn, err}
	}()
	d := <-done
	return d.conn, d.err
}
