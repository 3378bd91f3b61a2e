package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// After a reboot, pods start before the API server is back. The last limit of the API server is in force for the first of
// them.
func TestTheLastGoodConfigurationIsInForceBeforeTheAPIServerAnswers(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	stateDir := with(func(o *Options) { o.StateDir = state })
	before := unstartedAPINodeWith(t, []nodeOption{stateDir})
	before.starts()
	before.eventually("the configuration is on disk", func() bool {
		_, err := os.Stat(before.options.lastGoodPath())
		return err == nil
	})
	before.stopDaemon()

	after := unstartedAPINodeWith(t, []nodeOption{stateDir})
	var away atomic.Bool
	away.Store(true)
	after.dynamic.PrependReactor("list", "*", func(clienttest.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, errors.New("the API server is away")
	})
	after.starts()
	after.eventually("the daemon is ready", func() bool { return after.d.Ready() == nil })
	s := after.d.Status()
	assert.Equal(t, string(crd.OriginDisk), s.Config.Origin)
	assert.Equal(t, "object", s.Config.Name)
	assert.Equal(t, 1, s.Limit)
	away.Store(false)
	after.eventually("the API server's configuration is in force", func() bool {
		return after.d.Status().Config.Origin == string(crd.OriginAPI)
	})
}

func TestInstancesKeepTheirConfigurationsApart(t *testing.T) {
	t.Parallel()
	o := Options{StateDir: "/state"}
	assert.Equal(t, "/state/config.json", o.lastGoodPath())
	o.Instance = "blue"
	assert.Equal(t, "/state/config-blue.json", o.lastGoodPath())
}

// A role that has lost the right to read one kind must not go unnoticed.
func TestStatusSaysWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := unstartedAPINode(t)
	c.dynamic.PrependReactor("list", v1alpha1.PolicyResource.Resource, func(clienttest.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1alpha1.PolicyResource.GroupResource(), "", errors.New("no role"))
	})
	c.starts()
	c.eventually("the status says so", func() bool {
		unread := c.d.Status().Unread
		return len(unread) == 1 && unread[0].What == "StartPolicies" && strings.Contains(unread[0].Why, "no role")
	})
}

func TestAFileOfTheLastGoodIsWrittenOnlyIfItChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, keepFile(path, []byte("one")))
	before, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), before.Mode())
	isSame := func() bool {
		now, err := os.Stat(path)
		return err == nil && os.SameFile(before, now)
	}
	require.NoError(t, keepFile(path, []byte("one")))
	assert.True(t, isSame())
	require.NoError(t, keepFile(path, []byte("two")))
	assert.False(t, isSame(), "the file is replaced whole")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no other file is left beside it")
}
