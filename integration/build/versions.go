package build

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed versions.txt
var versionsText string

// Component is one line of versions.txt: a module at a version.
type Component struct {
	// Name is the lab's name for the component, for instance "containerd". A second version of the
	// same component has the name "<name>@<short version>"; the part before the @ picks the recipe.
	Name string
	// Module is the Go module's path.
	Module string
	// Version is the module's version, with the leading v.
	Version string
	// Sum is the module's h1: checksum.
	Sum string
	// With are modules that it is built with in newer versions than it asks for, each as path@version. Go's checksum
	// database verifies them.
	With []string
}

// recipe returns the name of the component's recipe.
func (c Component) recipe() string {
	name, _, _ := strings.Cut(c.Name, "@")
	return name
}

// Find returns the component with that name from versions.txt.
func Find(name string) (Component, error) {
	all, err := parseVersions(strings.NewReader(versionsText))
	if err != nil {
		return Component{}, fmt.Errorf("versions.txt: %w", err)
	}
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
	}
	return Component{}, fmt.Errorf("versions.txt names no component %q", name)
}

func parseVersions(r io.Reader) ([]Component, error) {
	var all []Component
	seen := map[string]bool{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 {
			return nil, fmt.Errorf("line %d: want name, module, version and checksum, then newer modules if any; got %d fields", n, len(f))
		}
		c := Component{Name: f[0], Module: f[1], Version: f[2], Sum: f[3], With: append([]string(nil), f[4:]...)}
		switch {
		case seen[c.Name]:
			return nil, fmt.Errorf("line %d: %s stands twice", n, c.Name)
		case !strings.HasPrefix(c.Version, "v"):
			return nil, fmt.Errorf("line %d: version %q does not begin with v", n, c.Version)
		case !strings.HasPrefix(c.Sum, "h1:"):
			return nil, fmt.Errorf("line %d: checksum %q is none of kind h1", n, c.Sum)
		}
		seen[c.Name] = true
		all = append(all, c)
	}
	return all, lines.Err()
}
