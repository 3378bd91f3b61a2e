package nri

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// NRI itself lists what the rule of listing.go accepts, in several orders. Half of the containers are as large as the
// rule allows.
func TestNRIListsWhatTheRuleAccepts(t *testing.T) {
	adaptation.SetPluginRequestTimeout(time.Minute)
	adaptation.SetPluginRegistrationTimeout(time.Minute)
	t.Cleanup(func() {
		adaptation.SetPluginRequestTimeout(adaptation.DefaultPluginRequestTimeout)
		adaptation.SetPluginRegistrationTimeout(adaptation.DefaultPluginRegistrationTimeout)
	})
	var pods []*api.PodSandbox
	var ctrs []*api.Container
	for i := range 40 {
		pods = append(pods, &api.PodSandbox{Id: fmt.Sprint("p", i), Name: fmt.Sprint("p", i)})
		size := mostListed/largest - besides
		if i%2 == 0 {
			size = 1000
		}
		ctrs = append(ctrs, &api.Container{Id: fmt.Sprint("c", i), Name: "app", Env: []string{"A=" + strings.Repeat("x", size)}})
	}
	for range 3 {
		rand.Shuffle(len(ctrs), func(i, j int) { ctrs[i], ctrs[j] = ctrs[j], ctrs[i] })
		assert.Equal(t, len(ctrs), listedBy(t, pods, ctrs))
	}
}

// listedBy returns how many containers a plugin gets from a runtime that has these.
func listedBy(t *testing.T, pods []*api.PodSandbox, ctrs []*api.Container) (count int) {
	t.Helper()
	socket := aSocket(t)
	runtime, err := adaptation.New("containerd", "v2.4.2", func(ctx context.Context, list adaptation.SyncCB) error {
		_, err := list(ctx, pods, ctrs)
		return err
	}, func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
		return nil, nil
	},
		adaptation.WithSocketPath(socket), adaptation.WithPluginPath(filepath.Dir(socket)), adaptation.WithPluginConfigPath(filepath.Dir(socket)))
	require.NoError(t, err)
	require.NoError(t, runtime.Start())
	defer runtime.Stop()
	log, _ := logtest.NewNullLogger()
	h := &counts{heard: heard{reconnected: func() {}}}
	c := New(Options{Socket: socket, Name: "pacemaker", Index: "05", Log: log, Handler: h, FirstPause: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	<-c.Synced()
	cancel()
	require.NoError(t, <-ran)
	return h.containers
}

// counts is a Handler that counts the containers of the listing.
type counts struct {
	heard

	containers int
}

func (h *counts) Synchronize(_ []*api.PodSandbox, ctrs []*api.Container) { h.containers = len(ctrs) }
