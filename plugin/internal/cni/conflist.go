package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

const (
	// FileName is the name of the CNI configuration that the installer writes. It comes before all others.
	FileName = "00-pod-pacemaker.conflist"
	// ProgramName is the name of the CNI plugin in which pods wait, and of its file.
	ProgramName = "pacemaker-cni"
)

// First returns the name of the configuration in dir that makes the network of pods: the first by name, without FileName
// and without those before FileName that refer to it. It returns an error if there is none.
func First(dir string) (name string, err error) {
	others, err := readOthers(dir)
	if err != nil {
		return "", err
	}
	for _, other := range others {
		if other.name > FileName || !refers(other.text) {
			return other.name, nil
		}
	}
	return "", errors.New("there is no CNI configuration yet")
}

// InPlace reports whether dir has the configuration of an installer.
func InPlace(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, FileName))
	return err == nil
}

type configuration struct {
	name string // of the file
	text []byte // nil if it cannot be read
}

// readOthers reads the configurations in dir without FileName, by name.
func readOthers(dir string) (others []configuration, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && e.Name() != FileName && slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())) {
			text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
			others = append(others, configuration{e.Name(), text})
		}
	}
	return others, err
}

// refers reports whether a configuration calls the one in FileName or contains a copy of it, as the configuration of
// Multus may. A copy of such a configuration would call itself.
func refers(text []byte) bool {
	return bytes.Contains(text, []byte(FileName)) || bytes.Contains(text, []byte(ProgramName))
}

// conflist returns a copy of the configuration in the file of that name, with pacemaker-cni at the end of its chain.
func (o Options) conflist(name string, text []byte) ([]byte, error) {
	var list map[string]json.RawMessage
	var given struct {
		Name, CNIVersion string
		Plugins          []json.RawMessage
	}
	if err := errors.Join(json.Unmarshal(text, &list), json.Unmarshal(text, &given)); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, ".conflist") {
		list = map[string]json.RawMessage{"cniVersion": list["cniVersion"], "name": list["name"]}
		given.Plugins = []json.RawMessage{text}
	}
	if len(given.Plugins) == 0 {
		return nil, errors.New("it names no plugins")
	}
	if refers(text) {
		return nil, errors.New("it names " + ProgramName + " already, or " + FileName)
	}
	for _, p := range given.Plugins {
		var named struct{ Type string }
		if err := json.Unmarshal(p, &named); err != nil || named.Type == "" {
			return nil, errors.Join(errors.New("a plugin has no type"), err)
		}
		if _, err := os.Lstat(filepath.Join(o.BinDir, named.Type)); err != nil { // a link may lead to another part of the host
			return nil, fmt.Errorf("its plugin %s is not in %s, so the runtime would not find %s there: set --cni-bin-dir"+
				" (chart: waitingRoom.binDir) to the runtime's bin_dir: %w", named.Type, o.BinDir, ProgramName, err)
		}
	}
	if given.Name == "" {
		return nil, errors.New("the network has no name")
	}
	// libcni appends these to the plugins of the file.
	if more, _ := filepath.Glob(filepath.Join(o.ConfDir, given.Name, "*.conf")); len(more) > 0 && string(list["loadOnlyInlinedPlugins"]) != "true" {
		return nil, fmt.Errorf("%s is part of its network as well, and would come after %s", more[0], ProgramName)
	}
	switch given.CNIVersion {
	case "", "0.1.0", "0.2.0", "0.3.0":
		return nil, fmt.Errorf("its CNI version %q is older than 0.3.1", given.CNIVersion)
	}
	last, err := json.Marshal(map[string]any{
		"type": ProgramName, "socket": o.Socket, "confDir": o.ConfDir,
		"timeoutMillis": o.Timeout.Milliseconds(), "settleMillis": settleFor.Milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	if list["plugins"], err = json.Marshal(append(given.Plugins, last)); err != nil {
		return nil, err
	}
	all, err := json.MarshalIndent(list, "", "  ")
	return append(all, '\n'), err
}

// endsWithUs reports whether the last plugin of a configuration is pacemaker-cni, as in each that an installer wrote, and
// returns the socket at which that plugin asks.
func endsWithUs(text []byte) (socket string, ends bool) {
	var list struct {
		Plugins []struct{ Type, Socket string }
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list.Plugins) == 0 {
		return "", false
	}
	last := list.Plugins[len(list.Plugins)-1]
	return last.Socket, last.Type == ProgramName
}

// Remove removes the configuration from the node, waits for pause, and removes the program: an ADD that is under way
// may run the program until then. Remove blocks meanwhile. A file that does not exist is no error. If the pods of the
// configuration ask another daemon than the one at o.Socket, Remove returns an error and removes nothing. If another
// configuration names the configuration or the program, Remove returns an error, and the program stays: without it, no
// pod of the node would start. If another one names the configuration, that stays, too, and lets every pod pass at
// once. Of o, Remove uses the folders and the socket.
func Remove(o Options, pause time.Duration) error {
	path := filepath.Join(o.ConfDir, FileName)
	have, _ := os.ReadFile(path) // it need not be there
	if socket, _ := endsWithUs(have); socket != "" && socket != o.Socket {
		return fmt.Errorf("%s stays: it is of the daemon at %s, and not of the one at %s", path, socket, o.Socket)
	}
	err := removeConfiguration(o.ConfDir)
	time.Sleep(pause)
	if err == nil {
		err = named(o.ConfDir, ProgramName)
	}
	if err != nil {
		return err
	}
	return removeFile(filepath.Join(o.BinDir, ProgramName))
}

// removeFile is wholefile.Remove for a folder that may be read-only if the file is not there.
func removeFile(path string) error {
	err := wholefile.Remove(path)
	if errors.Is(err, unix.EROFS) {
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			return nil
		}
	}
	return err
}

// removeConfiguration removes the configuration. If another one names it, it lets every pod pass at once, and returns an
// error.
func removeConfiguration(dir string) error {
	path := filepath.Join(dir, FileName)
	if err := named(dir, FileName); err != nil {
		return errors.Join(err, letPass(path))
	}
	return errors.Join(removeFile(path), removeFile(path+ciliumSuffix))
}

// named returns an error if a configuration other than FileName contains the name of a file.
func named(dir, file string) error {
	others, err := readOthers(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, other := range others {
		if bytes.Contains(other.text, []byte(file)) {
			return fmt.Errorf("%s names %s, which stays: make it use another configuration (Multus: --multus-master-cni-file-name),"+
				" then remove %s and %s", other.name, file, FileName, ProgramName)
		}
	}
	return nil
}

// letPass makes pods pass at once through the configuration at path: without a socket, the program does not wait.
func letPass(path string) error {
	text, err := os.ReadFile(path)
	var list map[string]json.RawMessage
	var plugins []map[string]json.RawMessage
	if err := errors.Join(err, json.Unmarshal(text, &list), json.Unmarshal(list["plugins"], &plugins)); err != nil {
		return err
	}
	for _, p := range plugins {
		if string(p["type"]) == `"`+ProgramName+`"` {
			p["socket"] = json.RawMessage(`""`)
		}
	}
	if list["plugins"], err = json.Marshal(plugins); err != nil {
		return err
	}
	all, err := json.MarshalIndent(list, "", "  ")
	if err == nil {
		_, err = wholefile.Ensure(path, append(all, '\n'), 0o600)
	}
	return err
}

// look returns a text that describes the files of a folder. It changes when any file changes, and is never empty. Of a
// folder in the folder it has the name only: the runtime does not notice what changes in that.
func look(dir string) (seen string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	seen = dir
	for _, e := range entries {
		if e.IsDir() {
			seen += fmt.Sprintf("\n%q", e.Name())
		} else if info, err := e.Info(); err == nil { // else the file was removed meanwhile
			seen += fmt.Sprintf("\n%q %d %d", e.Name(), info.ModTime().UnixNano(), info.Size())
		}
	}
	return seen, nil
}
