//go:build e2e && full

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rivalPlugin is the type of the plugin that Linkerd's agent writes into each configuration.
const rivalPlugin = "linkerd-cni"

// rivalAgent does what the script of Linkerd's CNI plugin does: it puts its own plugin into the folder of the programs,
// appends it to each configuration that lacks it, also to those that change or come later, and renames its new text over
// the old one. When it goes it takes both out again.
type rivalAgent struct {
	stop context.CancelFunc
	err  error         // what ended its edits
	done chan struct{} // closed when it edits no more
}

func startRivalAgent(t *testing.T) *rivalAgent {
	t.Helper()
	configs, plugins := roomFolders()
	// As the last of a chain, loopback gives the result that it got.
	program, err := filepath.EvalSymlinks(filepath.Join(plugins, "loopback"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(program, filepath.Join(plugins, rivalPlugin)))
	ctx, cancel := context.WithCancel(context.Background())
	a := &rivalAgent{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for ctx.Err() == nil && a.err == nil {
			a.err = editConfigs(configs, true)
			after(ctx, 50*time.Millisecond)
		}
	}()
	t.Cleanup(func() { a.uninstall(t) })
	return a
}

func (a *rivalAgent) uninstall(t *testing.T) {
	t.Helper()
	a.stop()
	<-a.done
	require.NoError(t, a.err)
	configs, plugins := roomFolders()
	require.NoError(t, editConfigs(configs, false))
	require.NoError(t, os.RemoveAll(filepath.Join(plugins, rivalPlugin)))
}

// editConfigs sees to it that all configurations have the agent's plugin, or that none has.
func editConfigs(folder string, have bool) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.conflist"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Contains(text, []byte(rivalPlugin)) == have {
			continue // removed meanwhile, or as it should be
		}
		if err != nil {
			return err
		}
		var config struct {
			CNIVersion string           `json:"cniVersion"`
			Name       string           `json:"name"`
			Plugins    []map[string]any `json:"plugins"`
		}
		if err := json.Unmarshal(text, &config); err != nil {
			return err
		}
		if have {
			config.Plugins = append(config.Plugins, map[string]any{"type": rivalPlugin})
		} else {
			config.Plugins = config.Plugins[:len(config.Plugins)-1]
		}
		if text, err = json.MarshalIndent(config, "", "  "); err != nil {
			return err
		}
		edited := filepath.Join(folder, "."+strings.TrimSuffix(filepath.Base(file), ".conflist"))
		if err := errors.Join(os.WriteFile(edited, text, 0o644), os.Rename(edited, file)); err != nil {
			return err
		}
	}
	return nil
}

// An agent that edits each configuration comes while pods wait in the room: --cni=auto gives up its file, says why, and
// leaves the cluster's own as the agent wrote it. All pods start meanwhile. Once the agent has gone, a daemon that is
// restarted has the room again.
func TestTheRoomGivesWayToAnAgentThatEditsEachConfiguration(t *testing.T) {
	removeRoomLater(t)
	configs, _ := roomFolders()
	own := filepath.Join(configs, "10-lab.conflist")
	before, err := os.ReadFile(own)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.WriteFile(own, before, 0o644)) })
	d := startDaemon(t, roomArgs("auto")...)
	d.awaitRoom(t)
	ns := namespace(t)
	const pods = 12
	slow, _, _ := fillRoom(t, d, ns, pods, func() { deploy(t, ns, "herd", pods, herdPod(0.1)) }, nil)

	agent := startRivalAgent(t)
	eventually(t, "the room is out", func() bool { return !d.status(t).Room.Installed })
	slow.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, pods+roomLimit) })
	createPod(t, ns, "later", herdPod(0.1))
	eventually(t, "a pod is ready beside the agent", func() bool { return allReady(t, ns, pods+roomLimit+1) })
	assert.NoFileExists(t, roomFiles()[0])
	edited, err := os.ReadFile(own)
	require.NoError(t, err)
	assert.Contains(t, string(edited), rivalPlugin, "the cluster's own configuration")
	whyNot := d.status(t).Room.WhyNot
	assert.True(t, strings.Contains(whyNot, "Linkerd writes into each configuration") || strings.Contains(whyNot, "another program"), whyNot)
	figure(t, "the room is out: %s", whyNot)

	agent.uninstall(t)
	require.NoError(t, d.Stop(t.Context()))
	require.NoError(t, d.Start(t.Context()))
	eventually(t, "the room is back", func() bool { return d.status(t).Room.Installed })
	createPod(t, ns, "after", herdPod(0.1))
	eventually(t, "a pod is ready with the room", func() bool { return allReady(t, ns, pods+roomLimit+2) })
}
