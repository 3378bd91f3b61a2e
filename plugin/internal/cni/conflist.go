package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// FileName is the name of the configuration that is written.
	FileName = "00-pod-pacemaker.conflist"
	// ProgramName is the name of the plugin.
	ProgramName = "pacemaker-cni"
)

// Entry is what the plugin is told in the configuration.
type Entry struct {
	Type             string   `json:"type"`
	Socket           string   `json:"socket"`
	ConfDir          string   `json:"confDir"`
	TimeoutMillis    int64    `json:"timeoutMillis"`
	ExemptNamespaces []string `json:"exemptNamespaces,omitempty"`
}

// entry returns the plugin's part of the configuration.
func (o Options) entry() Entry {
	return Entry{
		Type: ProgramName, Socket: o.Socket, ConfDir: o.ConfDir,
		TimeoutMillis: o.Timeout.Milliseconds(), ExemptNamespaces: o.ExemptNamespaces,
	}
}

var (
	errNoNetwork = errors.New("there is no CNI configuration yet")
	errChained   = errors.New("it names " + ProgramName + " already")
)

// First returns the name of the file in the folder that the runtime would take if ours were not there; an
// error where there is none.
func First(dir string) (name string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries { // by name
		if !e.IsDir() && e.Name() != FileName && slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())) {
			return e.Name(), nil
		}
	}
	return "", errNoNetwork
}

// conflist returns a configuration with our plugin at the end of the chain of another one.
func conflist(name string, text []byte, ours Entry) ([]byte, error) {
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
		return nil, fmt.Errorf("it names no plugins: %w", errNoNetwork)
	}
	for _, p := range given.Plugins {
		var named struct{ Type string }
		if err := json.Unmarshal(p, &named); err != nil || named.Type == "" {
			return nil, fmt.Errorf("a plugin has no type: %w", errors.Join(err, errNoNetwork))
		}
		if named.Type == ProgramName {
			return nil, errChained
		}
	}
	if given.Name == "" {
		return nil, fmt.Errorf("the network has no name: %w", errNoNetwork)
	}
	switch given.CNIVersion {
	case "", "0.1.0", "0.2.0", "0.3.0":
		return nil, fmt.Errorf("it is of CNI %q, which is older than 0.3.1: %w", given.CNIVersion, errNoNetwork)
	}
	last, err := json.Marshal(ours)
	if err != nil {
		return nil, err
	}
	if list["plugins"], err = json.Marshal(append(given.Plugins, last)); err != nil {
		return nil, err
	}
	all, err := json.MarshalIndent(list, "", "  ")
	return append(all, '\n'), err
}

// Remove takes the configuration, and then the program, off the node; that there is none
// is no error.
func Remove(confDir, binDir string) error {
	var faults []error
	for _, path := range []string{filepath.Join(confDir, FileName), filepath.Join(binDir, ProgramName)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// look says what is in a folder: other words once anything there has changed, and some also where there is nothing.
func look(dir string) (seen string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	seen = dir
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it is gone again
			seen += fmt.Sprintf("\n%q %d %d", e.Name(), info.ModTime().UnixNano(), info.Size())
		}
	}
	return seen, nil
}
