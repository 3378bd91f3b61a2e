//go:build browser

package page

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/herdpage"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// script is a simulated node with the herd of the test.
type script struct {
	mu     sync.Mutex
	status admin.Status
	fault  error
	step   time.Duration // by which the node's time advances with each answer
}

func (s *script) Status() admin.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Time = s.status.Time.Add(s.step)
	return s.status
}

func (s *script) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func (s *script) Alive(context.Context) error { return nil }

func (s *script) Costs() admin.Costs { return admin.Costs{} }

// change changes the state of the node.
func (s *script) change(do func(*script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s)
}

// herd is the state in the sixth minute of a herd of 40 pods, two at a time.
func herd(now time.Time) *script {
	at := func(seconds float64) time.Time { return now.Add(time.Duration((seconds - 300) * float64(time.Second))) }
	settings := throttle.Settings{MaxConcurrent: 2}
	settings.Signals[throttle.SignalCPUPressure].Max = 60
	l := throttle.New(at(0), settings)
	var tickets []*throttle.Ticket
	for i := range 40 {
		tickets = append(tickets, l.Join(at(float64(i)), throttle.Request{UID: fmt.Sprint("uid-", i), Name: fmt.Sprintf("payments/web-%d", i)}))
	}
	for i := range 12 {
		if i > 1 {
			tickets[i-2].End(at(40+float64(20*i)), reasons.Ready)
		}
		tickets[i].TryStart(at(41 + float64(20*i)))
	}
	signals := throttle.Signals{}
	for signal, value := range map[throttle.Signal]float64{throttle.SignalCPU: 97, throttle.SignalCPUPressure: 71, throttle.SignalMemoryPressure: 0.4, throttle.SignalIOPressure: 6} {
		signals[signal] = throttle.Reading{Value: value, From: at(298), To: at(300)}
	}
	signals[throttle.SignalIOFull] = throttle.Reading{Err: os.ErrNotExist}
	s := admin.NewStatus(now, l.Snapshot(now), l.Recent())
	s.Node, s.Version, s.Since = "worker-3", "v0.2.0", now.Add(-2*time.Hour)
	s.Runtime = admin.Runtime{Name: "containerd", Version: "2.4.2", Connected: true, Synchronized: true}
	s.Config = admin.Config{Name: "jvm-nodes", Origin: "API", Generation: 4}
	s.Gate = admin.Gate{Usable: true, Waiters: 5, TimeoutSeconds: 100}
	s.Refused = admin.Refused{Sandbox: 23}
	s.Signals = admin.NewSignals(signals, settings)
	return &script{status: s}
}

// serve serves the page on this machine until the test ends.
func serve(t *testing.T, p admin.Provider) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- admin.ServeHTTP(ctx, address, p, prometheus.NewRegistry()) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	return "http://" + address + "/"
}

// browser is one tab and its errors.
type browser struct {
	context.Context
	mu     sync.Mutex
	faults []string
	asked  []string
}

// open starts the browser. The test fails if there is none on the PATH.
func open(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	require.NotEmpty(t, path, "this test needs a Chromium on the PATH, like Debian's package chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{Context: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	b.do(t, call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}))
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		b.faults = append(b.faults, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.faults = append(b.faults, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

// call makes an action from a command of the protocol.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(b, steps...))
}

// value returns the value of a JavaScript expression.
func value[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return v
}

// text returns the text of the element with the id.
func (b *browser) text(t *testing.T, id string) string {
	t.Helper()
	return value[string](t, b, `document.getElementById("`+id+`").textContent`)
}

// until waits until a JavaScript expression is true.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	require.Eventually(t, func() bool {
		is, err := chromedp.Run(b, chromedp.Evaluate[bool](expression))
		return err == nil && is
	}, 2*time.Minute, 50*time.Millisecond, expression)
}

// look saves a picture to the folder in PAGE_PICTURES, if any.
func (b *browser) look(t *testing.T, name string) {
	t.Helper()
	picture, err := chromedp.Run(b, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.Greater(t, len(picture), 10_000, "size of the picture: an empty page is smaller")
	if dir := os.Getenv("PAGE_PICTURES"); dir != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
	}
}

func scheme(value string) chromedp.Action[chromedp.Void] {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
	})
}

func TestPageShowsAHerd(t *testing.T) {
	node := herd(time.Now())
	node.step = 5 * time.Second
	url, b := serve(t, node), open(t)
	b.do(t, chromedp.EmulateViewport(1100, 900), scheme("light"), chromedp.Navigate(url))
	b.until(t, `document.getElementById("node").textContent === "worker-3"`)
	assert.Equal(t, "2 of 2", b.text(t, "slots"))
	assert.Equal(t, "28", b.text(t, "waiting"))
	assert.Equal(t, "pods are paced", b.text(t, "state"))
	assert.Contains(t, b.text(t, "reasons"), "Concurrency")
	assert.Contains(t, b.text(t, "facts"), "jvm-nodes (from API, generation 4)")
	assert.Contains(t, b.text(t, "signaltable"), "71%, limit 60%")
	assert.Contains(t, b.text(t, "signaltable"), "blind")
	assert.Contains(t, b.text(t, "signaltable"), "file does not exist", "the reason why the signal is not measured")
	assert.True(t, value[bool](t, b, `document.getElementById("herdbox").hidden`), "the daemon names no pod")
	b.until(t, `points.length >= 4`)
	for _, series := range []string{"waiting", "starting", "slots", "cpu", "pressure.cpu.some", "pressure.memory.some", "pressure.io.some"} {
		path := b.line(t, series)
		assert.GreaterOrEqual(t, strings.Count(path, "L"), 3, series)
		assert.NotContains(t, path, "NaN", series)
	}
	assert.NotContains(t, value[string](t, b, `document.documentElement.outerHTML`), "payments", "the page names no pod")
	b.look(t, "light")
	b.do(t, scheme("dark"))
	b.look(t, "dark")
	b.do(t, chromedp.EmulateViewport(390, 800, chromedp.EmulateMobile))
	assert.False(t, value[bool](t, b, `document.documentElement.scrollWidth > innerWidth`), "the page is not wider than a phone")
	b.look(t, "phone")

	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.faults)
	for _, asked := range b.asked {
		assert.True(t, strings.HasPrefix(asked, url), "asked for %s", asked)
	}
}

// line returns the path of a series.
func (b *browser) line(t *testing.T, series string) string {
	t.Helper()
	return value[string](t, b, `document.querySelector('path[data-series="`+series+`"]').getAttribute("d")`)
}

// The charts grow with each answer of the daemon, and forget what is older than ten minutes.
func TestPageRemembersWhatItHasRead(t *testing.T) {
	node := herd(time.Now())
	node.step = 5 * time.Second
	url, b := serve(t, node), open(t)
	b.do(t, chromedp.EmulateViewport(1100, 900), chromedp.Navigate(url))
	b.until(t, `points.length >= 2 && points.every(p => p.waiting === 28 && p.starting === 2 && p.slots === 2 && p.cpu === 97)`)
	node.change(func(s *script) { s.status.Waiting, s.status.Signals = s.status.Waiting[:3], nil })
	b.until(t, `points.at(-1).waiting === 3 && points[0].waiting === 28 && points.at(-1).cpu === undefined`)
	assert.Equal(t, 1, strings.Count(b.line(t, "waiting"), "M"))

	node.change(func(s *script) { s.step = time.Minute })
	b.until(t, `points.at(-1).time - points.at(-2).time === 60000`)
	assert.Greater(t, strings.Count(b.line(t, "waiting"), "M"), 1, "a gap, where the page has read nothing for a minute")

	node.change(func(s *script) { s.step = 4 * time.Minute })
	b.until(t, `points[0].waiting === 3 && points.length <= 3`)
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.faults)
}

// podsOf returns the pods of that herd, as kubelet reports them.
func podsOf(now time.Time) (rows []herdpage.Row) {
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds-300) * time.Second) }
	for i := range 40 {
		r := herdpage.Row{Namespace: "payments", Name: fmt.Sprint("web-", i), Accepted: at(i)}
		if i < 12 {
			r.Started = at(41 + 20*i)
		}
		if i < 10 {
			r.Ready = at(80 + 20*i)
		}
		rows = append(rows, r)
	}
	return append(rows,
		herdpage.Row{Namespace: "jobs", Name: "a-job-with-a-name-that-is-longer-than-a-column-of-this-page-is-wide", Accepted: at(100), Started: at(140), Ended: at(200)},
		herdpage.Row{Namespace: "jobs", Name: `<img src=x onerror="document.title='obeyed'">`, Accepted: at(101), Started: at(150), Restarts: 3})
}

// A user who may list pods sees a row for each pod.
func TestPageShowsEachPodToUsersWhoMayListPods(t *testing.T) {
	now := time.Now()
	daemon, err := url.Parse(serve(t, herd(now)))
	require.NoError(t, err)
	own := httptest.NewServer(herdpage.Handler(daemon, "key", func(context.Context) ([]herdpage.Row, error) { return podsOf(now), nil }))
	t.Cleanup(own.Close)
	b := open(t)
	b.do(t, chromedp.EmulateViewport(1100, 900), scheme("light"), chromedp.Navigate(own.URL+"/key/?pods"))
	b.until(t, `document.querySelectorAll("#herd .row").length === 43`) // including the axis
	count := func(kind string) int { return value[int](t, b, `document.querySelectorAll("#herd .`+kind+`").length`) }
	assert.Equal(t, 42, count("waits"))
	assert.Equal(t, 14, count("starts"))
	assert.Equal(t, 10, count("ready"))
	assert.Equal(t, 1, count("ended"))
	width := func(row int, kind string) float64 {
		return value[float64](t, b, fmt.Sprintf(`(() => {
			const track = document.querySelectorAll("#herd .row")[%d].querySelector(".track");
			return track.querySelector(".%s").getBoundingClientRect().width / track.getBoundingClientRect().width;
		})()`, row, kind))
	}
	assert.InDelta(t, 41.0/600, width(0, "waits"), 0.01, "the width of the first wait, 41 s of the 10 minutes")
	assert.InDelta(t, 39.0/600, width(0, "starts"), 0.01)
	assert.InDelta(t, 220.0/600, width(0, "ready"), 0.01)
	assert.Contains(t, value[string](t, b, `document.querySelectorAll("#herd .row")[0].title`), "payments/web-0: waited 41 s, started within 39 s")
	assert.Contains(t, b.text(t, "herd"), "<img src=x", "a name is shown as text")
	b.look(t, "pods-light")
	b.do(t, scheme("dark"))
	b.look(t, "pods-dark")
	b.do(t, chromedp.EmulateViewport(390, 800, chromedp.EmulateMobile))
	assert.False(t, value[bool](t, b, `document.documentElement.scrollWidth > innerWidth`), "the page is not wider than a phone")
	b.look(t, "pods-phone")
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.faults)
}

func TestPageFollowsTheNode(t *testing.T) {
	node := herd(time.Now())
	url, b := serve(t, node), open(t)
	b.do(t, chromedp.Navigate(url))
	b.until(t, `document.getElementById("waiting").textContent === "28"`)
	node.change(func(s *script) {
		s.status.Waiting = slices.Clone(s.status.Waiting[:3])
		s.status.Waiting[0].Reason = reasons.CPULoad
	})
	b.until(t, `document.getElementById("waiting").textContent === "3"`)
	assert.Equal(t, "2 Concurrency, 1 CPULoad", b.text(t, "reasons"), "the most frequent reason is first")
	node.change(func(s *script) {
		s.fault = fmt.Errorf("not connected to the runtime yet")
		s.status.Waiting, s.status.Starting = nil, nil
		// Text from elsewhere is shown as text, not executed.
		s.status.Config.Name = `<img src=x onerror="document.title='obeyed'">`
	})
	b.until(t, `document.getElementById("state").textContent === "pods start unpaced"`)
	assert.Equal(t, "not connected to the runtime yet", b.text(t, "alarm"))
	assert.Equal(t, "no pod waits", b.text(t, "reasons"))
	assert.Contains(t, b.text(t, "facts"), "<img src=x")
	b.look(t, "unpaced")
	node.change(func(s *script) { s.fault, s.status.Config.Mode = nil, "Shadow" })
	b.until(t, `document.getElementById("state").textContent === "no pod is held: mode Shadow"`)
	node.change(func(s *script) { s.status.Config = admin.Config{Origin: "None", Mode: "Enforce"} })
	b.until(t, `document.getElementById("state").textContent === "no pod is held: no config"`)
	node.change(func(s *script) { s.status.Policies = []admin.Policy{{Name: "registry"}} })
	b.until(t, `document.getElementById("state").textContent === "pods are paced"`)
	assert.Contains(t, b.text(t, "facts"), "1 in force")
	node.change(func(s *script) {
		s.status.Config, s.status.Lent = admin.Config{Name: "jvm-nodes", Origin: "API", Mode: "Enforce"}, 2
	})
	b.until(t, `document.getElementById("beside").textContent.includes("2 lent")`)
	assert.Equal(t, "pods are paced", b.text(t, "state"))
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.faults)
}

// A script that was injected into the page does not run.
func TestPageRunsOnlyItsOwnScript(t *testing.T) {
	url, b := serve(t, herd(time.Now())), open(t)
	b.do(t, chromedp.Navigate(url))
	b.until(t, `document.getElementById("node").textContent === "worker-3"`)
	smuggled := base64.StdEncoding.EncodeToString([]byte("document.title = 'smuggled'"))
	require.True(t, value[bool](t, b, `(() => {
		const inline = document.createElement("script");
		inline.textContent = "document.title = 'smuggled'";
		document.body.append(inline);
		const from = document.createElement("script");
		from.src = "data:text/javascript;base64,`+smuggled+`";
		document.body.append(from);
		return true;
	})()`))
	b.until(t, `document.title.startsWith("worker-3")`)
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Len(t, b.faults, 2, "the browser's reports of both refusals")
}
