package uninstall

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// ended returns the options of a daemon that has ended, with all its files on the host.
func ended(t *testing.T, objects ...runtime.Object) (Options, *kubefake.Clientset) {
	t.Helper()
	dir := t.TempDir()
	log, _ := logtest.NewNullLogger()
	client := kubefake.NewClientset(objects...)
	o := Options{
		Client: kubetest.Of(client), DaemonSet: "pacing/pod-pacemaker", Seen: true, RunDir: filepath.Join(dir, "run"), Log: log,
		Files: []string{filepath.Join(dir, "run", "gate.sock"), rundir.LockPath(filepath.Join(dir, "run")), filepath.Join(dir, "bin", "pacemaker-gate")},
	}
	for _, file := range append(o.Files, filepath.Join(dir, "bin", ".pacemaker-gate.123"), filepath.Join(dir, "run", "room", "uid")) {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	return o, client
}

// onHost counts the files that are left on the host.
func (o Options) onHost(t *testing.T) int {
	t.Helper()
	n := 0
	for _, dir := range []string{o.RunDir, filepath.Dir(o.Files[len(o.Files)-1])} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		n += len(entries)
	}
	return n
}

func set(deleting bool) *appsv1.DaemonSet {
	s := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "pacing", Name: "pod-pacemaker"}}
	if deleting {
		s.DeletionTimestamp = &metav1.Time{}
	}
	return s
}

func TestFilesGoWithTheDaemonSet(t *testing.T) {
	t.Parallel()
	asIs := func(*testing.T, *Options) {}
	for name, c := range map[string]struct {
		objects []runtime.Object
		change  func(*testing.T, *Options)
		stay    bool
	}{
		"gone":                     {nil, asIs, false},
		"about to go":              {[]runtime.Object{set(true)}, asIs, false},
		"only the pod is replaced": {[]runtime.Object{set(false)}, asIs, true},
		// With a prefix of kustomize, say, no DaemonSet has the name in --daemonset, and each end of a daemon would look like
		// the end of its DaemonSet.
		"it was never there": {nil, func(_ *testing.T, o *Options) { o.Seen = false }, true},
		"another daemon took over": {nil, func(t *testing.T, o *Options) {
			lock, _, err := rundir.TryLock(o.RunDir, o.Version)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, lock.Close()) })
		}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			o, _ := ended(t, c.objects...)
			c.change(t, &o)
			before := o.onHost(t)
			require.NoError(t, Run(t.Context(), o))
			left := 0
			if c.stay {
				left = before
			}
			assert.Equal(t, left, o.onHost(t), name)
		})
	}
}

// Nobody answers the waiting room where the DaemonSet has no pod any more: every pod of the node would start 10 s late.
func TestFilesGoFromANodeThatTheDaemonSetLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels map[string]string
		stay   bool
	}{
		"selected": {map[string]string{"pool": "paced", "more": "labels"}, true}, "not any more": {map[string]string{"pool": "other"}, false},
		"the node is not known": {nil, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			narrow := set(false)
			narrow.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "paced"}
			narrow.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"--cni"}}}
			objects := []runtime.Object{narrow}
			if c.labels != nil {
				objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: c.labels}})
			}
			o, _ := ended(t, objects...)
			o.NodeName, o.Room, o.CNIConfDir, o.CNIBinDir = "worker", true, t.TempDir(), t.TempDir()
			list := filepath.Join(o.CNIConfDir, cni.FileName)
			require.NoError(t, os.WriteFile(list, []byte("{}"), 0o600))
			before := o.onHost(t)
			require.NoError(t, Run(t.Context(), o))
			if c.stay {
				assert.FileExists(t, list, name)
				assert.Equal(t, before, o.onHost(t), name)
			} else {
				assert.NoFileExists(t, list, name)
				assert.Zero(t, o.onHost(t), name)
			}
		})
	}
}

// A process in the waiting room sees that the configuration is removed, leaves a note and ends.
func TestNoNoteOfTheWaitingRoomIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, _ := ended(t)
		o.Room, o.CNIConfDir, o.CNIBinDir = true, t.TempDir(), t.TempDir()
		list := filepath.Join(o.CNIConfDir, cni.FileName)
		require.NoError(t, os.WriteFile(list, []byte("{}"), 0o600))
		left := make(chan error)
		go func() {
			for {
				time.Sleep(250 * time.Millisecond)
				if _, err := os.Stat(list); err == nil {
					continue
				}
				folder := filepath.Join(o.RunDir, wire.NoteFolder)
				left <- errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "late"), nil, 0o600))
				return
			}
		}()
		done := make(chan error)
		go func() { done <- Run(t.Context(), o) }()
		require.NoError(t, <-left)
		require.NoError(t, <-done)
		assert.Zero(t, o.onHost(t))
	})
}

// None of these answers means that the DaemonSet is gone. A token can expire, a role can be missing, the address can
// belong to a proxy, and the API server can be away.
func TestFilesStayIfTheAnswerIsUnclear(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "daemonsets"}
	for _, answer := range []error{
		apierrors.NewUnauthorized("Unauthorized"),
		apierrors.NewForbidden(resource, "pod-pacemaker", nil),
		apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "pod-pacemaker", "404 page not found", 0, true),
		errors.New("connection refused"),
	} {
		for _, of := range []string{"daemonsets", "*"} {
			synctest.Test(t, func(t *testing.T) {
				o, client := ended(t, set(false))
				client.PrependReactor("get", of, func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
				before := o.onHost(t)
				require.NoError(t, Run(t.Context(), o))
				assert.Equal(t, before, o.onHost(t), "%s: %v", of, answer)
			})
		}
	}
}

// After a reboot the API server may be away for some time.
func TestADaemonAsksUntilItKnowsWhetherItsDaemonSetIsThere(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string][]runtime.Object{"there": {set(false)}, "about to go": {set(true)}, "not there": nil} {
		synctest.Test(t, func(t *testing.T) {
			client, asked := kubefake.NewClientset(objects...), 0
			client.PrependReactor("get", "daemonsets", func(kubetesting.Action) (bool, runtime.Object, error) {
				asked++
				return asked <= 20, nil, errors.New("connection refused")
			})
			log, hook := logtest.NewNullLogger()
			began := time.Now()
			assert.Equal(t, len(objects) > 0, See(t.Context(), kubetest.Of(client), "pacing/pod-pacemaker", log), name)
			assert.Equal(t, 21, asked)
			assert.Greater(t, time.Since(began), 30*time.Minute, "the requests get rare")
			assert.Len(t, hook.AllEntries(), 1-len(objects), name)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		client := kubefake.NewClientset()
		client.PrependReactor("get", "daemonsets", func(kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "daemonsets"}, "pod-pacemaker", nil)
		})
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		log, _ := logtest.NewNullLogger()
		assert.False(t, See(ctx, kubetest.Of(client), "pacing/pod-pacemaker", log))
	})
}

func TestTheRoomGoesWhenItIsSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"alone": false, "another daemon has taken over": true} {
		synctest.Test(t, func(t *testing.T) {
			roomless := set(false)
			roomless.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"metrics-proxy"}}, {Args: []string{"run", "--cni", "--cni=off"}}}
			o, _ := ended(t, roomless)
			o.Room, o.CNIConfDir, o.CNIBinDir = true, t.TempDir(), t.TempDir()
			list, program := filepath.Join(o.CNIConfDir, cni.FileName), filepath.Join(o.CNIBinDir, cni.ProgramName)
			require.NoError(t, os.WriteFile(list, []byte("{}"), 0o600))
			require.NoError(t, os.WriteFile(program, nil, 0o600))
			before := o.onHost(t)
			took := make(chan error, 1)
			if taken {
				time.AfterFunc(hookGrace/2, func() {
					lock, _, err := rundir.TryLock(o.RunDir, o.Version)
					t.Cleanup(func() { assert.NoError(t, lock.Close()) })
					took <- err
				})
			}
			require.NoError(t, Run(t.Context(), o))
			if taken {
				require.NoError(t, <-took)
				assert.FileExists(t, list, name)
				assert.FileExists(t, program, name)
			} else {
				assert.NoFileExists(t, list, name)
				assert.NoFileExists(t, program, name)
			}
			assert.Equal(t, before, o.onHost(t), "%s: the other files stay", name)
		})
	}
}

// A daemon whose flags do not name the room has it, as by default.
func TestFlagsThatTakeTheRoomAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		off  bool
	}{
		{nil, false}, {[]string{"run", "--cni"}, false}, {[]string{"run", "--cni=auto"}, false}, {[]string{"run", "--cni=off"}, true},
		{[]string{"run", "--cni=off", "--cni=on"}, false}, {[]string{"run", "--cni=off", "--cni-bin-dir=off"}, true},
		{[]string{"run", "--cni-conf-dir=/net.d", "--cni-bin-dir=/bin"}, false}, {[]string{"run", "--cni-bin-dir=/bin"}, false}, {[]string{"run", "--cni-bin-dir", "/bin"}, false}, {[]string{"run", "--cni=off", "--cni"}, false},
		{[]string{"run", "--cni-conf-dir=/other", "--cni-bin-dir=/bin"}, true}, {[]string{"run", "--cni-bin-dir=/other"}, true},
		{[]string{"run", "--cni-conf-dir=$(CONF_DIR)", "--cni=$(ROOM)"}, false}, {[]string{"run", "--cni-conf-dir=$(CONF_DIR)", "--cni=off"}, true},
	} {
		assert.Equal(t, c.off, Options{CNIConfDir: "/net.d", CNIBinDir: "/bin"}.refusesRoom(c.args), c.args)
	}
}

// The runtime begins a hook within seconds of the answer that named it.
func TestTheFilesStayUntilTheLastHookHasBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, _ := ended(t)
		before, meanwhile := o.onHost(t), make(chan int, 1)
		time.AfterFunc(2900*time.Millisecond, func() { meanwhile <- o.onHost(t) })
		require.NoError(t, Run(t.Context(), o))
		require.Len(t, meanwhile, 1)
		assert.Equal(t, before, <-meanwhile)
		assert.NotEqual(t, before, o.onHost(t))
	})
}
