package plugin

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

// bootRecord is the content of the file that tells the next daemon of this boot what was ready once.
type bootRecord struct {
	Boot string `json:"boot"` // the kernel's ID of the boot
	starts.ReadyOnce
}

// readyPath returns the file of that record. It is in the run folder, which is empty after a boot.
func (o Options) readyPath() string { return filepath.Join(o.RunDir, "ready.json") }

// boot returns the kernel's ID of the present boot, or "" if it is not known.
func (o Options) boot() string {
	id, err := os.ReadFile(filepath.Join(o.ProcRoot, "sys/kernel/random/boot_id"))
	if err != nil {
		o.Log.WithError(err).Warn("this boot of the node has no ID: after a restart of the daemon, pods wait again for those in startAfter, and a boot during a registration counts as an end of the runtime")
	}
	return strings.TrimSpace(string(id))
}

// readyOnce returns what an earlier daemon of this boot has kept, or the zero value if it kept nothing.
func (o Options) readyOnce(boot string) starts.ReadyOnce {
	content, err := os.ReadFile(o.readyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return starts.ReadyOnce{}
	}
	var record bootRecord
	if err == nil {
		err = json.Unmarshal(content, &record)
	}
	if err != nil {
		o.Log.WithError(err).Warn("the record of what was ready cannot be read: pods wait again for those in startAfter")
	}
	if boot == "" || record.Boot != boot {
		return starts.ReadyOnce{}
	}
	return record.ReadyOnce
}

// keepReady keeps what was ready once in this boot.
func (o Options) keepReady(boot string, once starts.ReadyOnce) {
	content, err := json.Marshal(bootRecord{Boot: boot, ReadyOnce: once})
	if err == nil {
		_, err = wholefile.Ensure(o.readyPath(), content, 0o600)
	}
	if err != nil {
		o.Log.WithError(err).Warn("the record of what was ready cannot be kept: after a restart of the daemon, pods wait again for those in startAfter")
	}
}

// nodeObject returns the UID of this node's Node object and when it was made. Both are zero if it is not known.
func (d *Daemon) nodeObject() (uid string, made time.Time) {
	if d.source == nil || d.source.Node() == nil {
		return "", time.Time{}
	}
	node := d.source.Node()
	return string(node.UID), node.CreationTimestamp.Time
}
