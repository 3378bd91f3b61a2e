package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

const registryPolicy = `apiVersion: pod-pacemaker.io/v1alpha1
kind: StartPolicy
metadata: {name: registry}
spec: {scope: Cluster, openAfter: 1s, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}}
`

// leaseServer stores Leases with versions, which client-go's fake does not.
type leaseServer struct {
	*kubefake.Clientset

	mu      sync.Mutex
	version int
	holders map[string]string
	fault   error
}

func newLeaseServer() *leaseServer {
	s := &leaseServer{Clientset: kubefake.NewClientset(), holders: map[string]string{}}
	s.PrependReactor("*", "leases", s.react)
	return s
}

func (s *leaseServer) react(a clienttest.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return true, nil, s.fault
	}
	s.version++
	switch action := a.(type) {
	case clienttest.CreateActionImpl:
		lease, ok := action.GetObject().DeepCopyObject().(*coordinationv1.Lease)
		if !ok {
			return true, nil, errors.New("no Lease")
		}
		if s.holders[lease.Name] != "" {
			return true, nil, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), lease.Name)
		}
		s.holders[lease.Name] = *lease.Spec.HolderIdentity
		lease.ResourceVersion, lease.UID = fmt.Sprint(s.version), "uid"
		return true, lease, nil
	case clienttest.UpdateActionImpl: // a renewal, where the test is slow
		lease, ok := action.GetObject().DeepCopyObject().(*coordinationv1.Lease)
		if !ok || s.holders[lease.Name] == "" {
			return true, nil, errors.New("no Lease")
		}
		lease.ResourceVersion = fmt.Sprint(s.version)
		return true, lease, nil
	case clienttest.GetActionImpl: // a renewal, if the test is slow
		return true, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), action.Name)
	case clienttest.DeleteActionImpl:
		delete(s.holders, action.Name)
		return true, nil, nil
	default:
		return true, &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.version)}}, nil
	}
}

func (s *leaseServer) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.holders)
}

// claims returns a node that claims slots from this server.
func claims(t *testing.T, s *leaseServer) *node {
	t.Helper()
	n := newNode(t, noLimit, tuned(func(r *tuning) { r.leases = s.leases() }))
	setRegistryPolicy(t, n.d)
	return n
}

func (s *leaseServer) leases() kube.Leases { return s.CoordinationV1().Leases("pod-pacemaker") }

func setRegistryPolicy(t *testing.T, d *Daemon) {
	t.Helper()
	found, err := crd.Parse([]byte(registryPolicy))
	require.NoError(t, err)
	for _, one := range found.Policies {
		one.UID = "its-uid"
	}
	d.applier.setPolicies(found.Policies)
}

// A claimer that has nothing to do sleeps for seconds. A pod that needs a slot wakes it.
func TestAPodThatNeedsALeaseIsNotKeptWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tune := defaultTuning()
		tune.leases = newLeaseServer().leases()
		d := newDaemon(Options{NodeName: "node", Log: discard(), ProcRoot: "/nowhere", CgroupRoot: "/nowhere"}, cores.Of(1), crd.Documents{}, nil, tune)
		d.applier.configure(crd.FromFile(&v1alpha1.PacemakerConfig{}))
		setRegistryPolicy(t, d)
		d.starts.SetNamespaces(time.Now(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- d.starts.Run(ctx) }()
		go func() { d.claimer.Run(ctx); ended <- nil }()
		time.Sleep(time.Minute + time.Second) // until the daemon is idle, and between two looks of the claimer
		sandbox := &api.PodSandbox{Id: "s", Uid: "first", Namespace: "default", Name: "first"}
		pod := podwatch.Pod{UID: "first", Namespace: "default", Name: "first", Facts: &startpolicy.Facts{}}
		start := d.starts.Container(time.Now(), sandbox, &api.Container{Id: "c", Name: "app", PodSandboxId: "s"}, pod, starts.HookTerms{})
		require.True(t, start.MayWait)
		begin, stop := time.Now(), start.Ticket.Wait(time.Now())
		<-start.Ticket.Decided()
		assert.Less(t, time.Since(begin), 200*time.Millisecond)
		stop()
		cancel()
		for range cap(ended) {
			assert.NoError(t, <-ended)
		}
	})
}

// A start takes a Lease, the next one waits for it, and the last releases it.
func TestAStartTakesALeaseOfTheCluster(t *testing.T) {
	t.Parallel()
	server := newLeaseServer()
	n := claims(t, server)
	first := n.pod("first", factsOf(nil, nil)).runs()
	first.startsNow("app")
	require.Equal(t, 1, server.held())
	n.eventually("the metric says that it holds", func() bool { return openByMetric(n, 0) })
	second := n.pod("second", factsOf(nil, nil)).runs()
	waits := second.waitsAtGate("app")
	require.Equal(t, 1, server.held())
	const throttled = "pod_pacemaker_policy_throttled"
	tells := func(value string) bool {
		text := "# HELP " + throttled + " Groups that have reached the limit, so that it holds every pod that needs more. resource is pods, pacer, or a resource.\n" +
			"# TYPE " + throttled + " gauge\n" + throttled + `{limit="starting",policy="registry",resource="pods"} ` + value + "\n"
		return testutil.GatherAndCompare(n.d.metrics(), strings.NewReader(text), throttled) == nil
	}
	n.eventually("the metric says that the slots are used up", func() bool { return tells("1") })
	first.getsReady()
	waits.succeeds()
	second.getsReady()
	n.eventually("the Lease is given back", func() bool { return server.held() == 0 })
	n.eventually("the metric says that no pod is held", func() bool { return tells("0") })
	assert.NoError(t, n.d.claims().Fault)
}

// A node in Shadow claims nothing, and gives back what it has: the pods of nodes that enforce would wait for pods that have
// started already.
func TestANodeInShadowHoldsNoLease(t *testing.T) {
	t.Parallel()
	server := newLeaseServer()
	n := claims(t, server)
	n.pod("first", factsOf(nil, nil)).runs().startsNow("app")
	require.Equal(t, 1, server.held())
	n.reconfigure("spec: {mode: Shadow}")
	n.eventually("the Lease is given back", func() bool { return server.held() == 0 })
	n.pod("second", factsOf(nil, nil)).runs().startsNow("app")
	_, starting := n.names()
	assert.Equal(t, []string{"first", "second"}, starting, "no slot of the cluster holds it, not even its ticket")
	n.reconfigure("spec: {}")
	n.eventually("the starts that are under way claim it again", func() bool { return server.held() == 1 })
}

// If the daemon may not use Leases because the role is missing, the policy holds no pod, and its fault says why.
func TestAPolicyOfTheClusterThatCannotClaimIsOpen(t *testing.T) {
	t.Parallel()
	server := newLeaseServer()
	server.fault = apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no role"))
	n := claims(t, server)
	for i := range 3 {
		n.pod(fmt.Sprint("pod-", i), factsOf(nil, nil)).runs().startsNow("app")
	}
	n.eventually("it says why", func() bool {
		return strings.Contains(n.d.policyStates()[0].Fault, "forbidden")
	})
	n.eventually("so does the metric", func() bool { return openByMetric(n, 1) })
}

// openByMetric reports whether the metric has this value for the policy.
func openByMetric(n *node, want int) bool {
	const name = "pod_pacemaker_claim_open"
	text := fmt.Sprintf("# HELP %s 1 while the policy holds no pod because the Leases of its slots cannot be used: "+
		"the API server is away, or the role is missing.\n# TYPE %s gauge\n%s{policy=\"registry\"} %d\n", name, name, name, want)
	return testutil.GatherAndCompare(n.d.metrics(), strings.NewReader(text), name) == nil
}
