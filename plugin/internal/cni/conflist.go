package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries { // by name
		if e.IsDir() || e.Name() == FileName || !slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())) {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && e.Name() < FileName && refers(text) {
			continue
		}
		return e.Name(), nil
	}
	return "", errors.New("there is no CNI configuration yet")
}

// refers reports whether a configuration calls the one in FileName or contains a copy of it, as that of Multus may. A copy
// of such a configuration would call itself.
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
	}
	if given.Name == "" {
		return nil, errors.New("the network has no name")
	}
	switch given.CNIVersion {
	case "", "0.1.0", "0.2.0", "0.3.0":
		return nil, fmt.Errorf("its CNI version %q is older than 0.3.1", given.CNIVersion)
	}
	last, err := json.Marshal(map[string]any{
		"type": ProgramName, "socket": o.Socket, "confDir": o.ConfDir, "timeoutMillis": o.Timeout.Milliseconds(),
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

// Remove removes the configuration and then the program from the node. It is no error if they do not exist.
func Remove(confDir, binDir string) error {
	return errors.Join(wholefile.Remove(filepath.Join(confDir, FileName)), wholefile.Remove(filepath.Join(binDir, ProgramName)))
}

// look returns a text that describes the files of a folder. It changes when any file changes, and is never empty.
func look(dir string) (seen string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	seen = dir
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else the file was removed meanwhile
			seen += fmt.Sprintf("\n%q %d %d", e.Name(), info.ModTime().UnixNano(), info.Size())
		}
	}
	return seen, nil
}
