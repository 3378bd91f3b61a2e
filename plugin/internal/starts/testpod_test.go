package starts

import (
	"strconv"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// testPod is a pod whose steps a test takes one by one. Its name is its UID.
type testPod struct {
	n       *node
	uid     string
	sandbox *api.PodSandbox           // the latest that was not refused; at first, without an ID
	latest  map[string]*api.Container // by name
	running map[string]string         // the IDs of the latest that began to run, by name
	made    int                       // sandboxes and containers
}

func (p *testPod) step() { time.Sleep(time.Millisecond) }

// id returns the ID of another sandbox or container.
func (p *testPod) id() string {
	p.made++
	return p.uid + "-" + strconv.Itoa(p.made)
}

// run makes another sandbox, which may be refused.
func (p *testPod) run() throttle.Decision {
	p.step()
	next := &api.PodSandbox{
		Id: p.id(), Uid: p.uid, Namespace: p.sandbox.GetNamespace(), Name: p.uid, Pid: 7,
		Labels: p.sandbox.GetLabels(), Annotations: p.sandbox.GetAnnotations(), Linux: p.sandbox.GetLinux(),
	}
	known := p.n.Known(p.uid)
	d, _ := p.n.Sandbox(time.Now(), NewSandbox{Sandbox: next, Pod: known, Refusable: true})
	if d.Granted {
		p.sandbox = next
	}
	return d
}

// runs makes another sandbox, which must not be refused.
func (p *testPod) runs() *testPod {
	p.n.t.Helper()
	require.True(p.n.t, p.run().Granted, p.uid)
	return p
}

// isMade makes a container. The node is not told.
func (p *testPod) isMade(name string) *api.Container {
	ctr := &api.Container{Id: p.id(), Name: name, PodSandboxId: p.sandbox.GetId(), Pid: 7}
	p.latest[name] = ctr
	return ctr
}

// asks makes a container, which asks whether it may start.
func (p *testPod) asks(name string) ContainerStart {
	p.step()
	ctr := p.isMade(name)
	known := p.n.Known(p.uid)
	return p.n.Container(time.Now(), p.sandbox, ctr, known, HookTerms{})
}

// mayStart makes a container, which must not wait.
func (p *testPod) mayStart(name string) {
	p.n.t.Helper()
	require.True(p.n.t, p.asks(name).Decision.Granted, "%s of %s", name, p.uid)
}

// begins makes the process of the latest container of a name begin, as that of an admitted start or of another.
func (p *testPod) begins(name string) {
	p.step()
	p.n.ContainerStarted(p.sandbox, p.latest[name])
	p.running[name] = p.latest[name].GetId()
}

// starts makes a container and its process, which must not wait.
func (p *testPod) starts(names ...string) {
	p.n.t.Helper()
	for _, name := range names {
		p.mayStart(name)
		p.begins(name)
	}
}

// waits makes a container that must wait, and its hook, which waits in the gate.
func (p *testPod) waits(name string) Ticket {
	p.n.t.Helper()
	start := p.asks(name)
	require.False(p.n.t, start.Decision.Granted, p.uid)
	require.True(p.n.t, start.MayWait, p.uid)
	ticket := p.n.EnterGate(time.Now(), start.Identity, p.latest[name].GetId(), time.Now(), time.Time{})
	p.is(throttle.Waiting, "")
	return ticket.Ticket
}

// exits ends the process of the latest container of each name.
func (p *testPod) exits(names ...string) {
	for _, name := range names {
		p.step()
		p.latest[name].State = api.ContainerState_CONTAINER_STOPPED
		p.n.ContainerStopped(p.sandbox, p.latest[name])
	}
}

// hasStarted makes a pod start and get ready.
func (p *testPod) hasStarted(names ...string) *testPod {
	p.n.t.Helper()
	p.runs().starts(names...)
	p.getsReady()
	p.is(throttle.Started, reasons.Ready)
	return p
}

// view returns the limiter's view of the start. It is the zero value if there is none.
func (p *testPod) view() throttle.TicketView {
	v, _ := p.n.View(time.Now(), p.uid)
	return v
}

// is asserts the state of the start, and the reason, if it is not empty.
func (p *testPod) is(state throttle.State, reason reasons.Reason, why ...string) {
	p.n.t.Helper()
	v := p.view()
	assert.Equal(p.n.t, state, v.State, "%s: %s", p.uid, strings.Join(why, ""))
	if reason != "" {
		assert.Equal(p.n.t, reason, v.Reason, "%s: %s", p.uid, strings.Join(why, ""))
	}
}
