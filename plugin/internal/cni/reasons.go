package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Use is when the waiting room is installed.
type Use string

// The three uses.
const (
	// UseAuto installs the room unless something on the node speaks against it, and removes it when that comes later.
	UseAuto Use = "auto"
	// UseOn installs the room where it can be installed.
	UseOn Use = "on"
	// UseOff installs no room.
	UseOff Use = "off"
)

// rivals are the plugins of agents that change the configurations of others, and what these agents do.
var rivals = map[string]string{
	"cilium-cni":  "Cilium renames the configurations of others, unless its cni.exclusive is false",
	"istio-cni":   "Istio writes into the first configuration",
	"linkerd-cni": "Linkerd writes into each configuration",
}

// against returns what speaks against the room on this node, or nil if nothing does. first is the configuration to
// copy.
func (o Options) against(first []byte) error {
	for _, reason := range []error{readOnly(o.ConfDir), readOnly(o.BinDir), renamed(o.ConfDir), rival(first)} {
		if reason != nil {
			return fmt.Errorf("%w (--cni=on installs the room all the same)", reason)
		}
	}
	return nil
}

// readOnly returns an error if the daemon cannot write files in a folder.
func readOnly(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("the daemon cannot write to %s: %w", dir, err)
	}
	return nil
}

// renamed returns an error if an agent has renamed configurations in a folder.
func renamed(dir string) error {
	if files, _ := filepath.Glob(filepath.Join(dir, "*"+ciliumSuffix)); len(files) > 0 {
		return errors.New("Cilium has renamed " + strings.TrimSuffix(filepath.Base(files[0]), ciliumSuffix))
	}
	return nil
}

// rival returns an error if a configuration has the plugin of an agent that changes the configurations of others.
func rival(text []byte) error {
	var c struct {
		Type    string
		Plugins []struct{ Type string }
	}
	_ = json.Unmarshal(text, &c) // a text that is no configuration is another reason
	for _, p := range append(c.Plugins, struct{ Type string }{c.Type}) {
		if does := rivals[p.Type]; does != "" {
			return errors.New(does)
		}
	}
	return nil
}

// outAfter is for how long the folder must keep changing until UseAuto removes the room.
const outAfter = 5 * time.Minute

// restless returns an error if the folder has kept changing for too long.
func (i *Installer) restless(now time.Time) error {
	if i.shut && now.Sub(i.shutSince) > outAfter {
		return errors.New(whyOften)
	}
	return nil
}

const whyOften = "the files in the folder of the CNI configurations keep changing: the room is installed again when they have not changed for a minute"

const (
	// passByMost is how many pods may pass the room by, if none has ever come, until the runtime is taken to use another
	// configuration.
	passByMost = 3
	// passByAfter is for how long pods may pass by after the room was installed and the daemon began to answer: their
	// networks were under way.
	passByAfter = time.Minute
)

// Came tells the installer that a pod has come to the room.
func (i *Installer) Came() { i.came.Store(true) }

// Made tells the installer that the runtime has made the sandbox of a pod of this namespace with a network of its own.
func (i *Installer) Made(now time.Time, namespace string) {
	open := i.open.Load()
	if namespace != systemNamespace && open != nil && now.Sub(*open) > passByAfter && !i.came.Load() {
		i.passedBy.Add(1)
	}
}

// systemNamespace is the namespace of pods that pass the room without coming to the daemon.
const systemNamespace = "kube-system"

// unused returns an error if pods pass the room by.
func (i *Installer) unused() error {
	if n := i.passedBy.Load(); n >= passByMost && !i.came.Load() {
		return fmt.Errorf("%d pods were made and none came by, so the runtime uses another configuration than the first in %s:"+
			" set --cni-conf-dir (chart: waitingRoom.confDir) to the runtime's conf_dir", passByMost, i.o.ConfDir)
	}
	return nil
}

// ciliumSuffix is what Cilium appends to the names of configurations that are not its own. It takes the suffix off when
// it is uninstalled.
const ciliumSuffix = ".cilium_bak"
