package cgroup

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

const sliceSuffix = ".slice"

// directory returns the directory of a cgroup below its hierarchy's root, always absolute and clean.
func directory(cgroup string) (string, error) {
	switch {
	case strings.ContainsRune(cgroup, 0):
		return "", errors.New("a NUL byte")
	case strings.HasPrefix(cgroup, "/"):
		return path.Clean(cgroup), nil
	case strings.Contains(cgroup, ":"):
		return systemdScope(cgroup)
	case strings.HasSuffix(cgroup, sliceSuffix):
		return expandSlice(cgroup)
	default:
		return "", errors.New("neither absolute nor of systemd's form")
	}
}

// systemdScope returns the directory of "slice:prefix:name", which the runtime hands to systemd: a scope unit
// prefix-name.scope in the slice, or the unit "name" itself when that is a slice.
func systemdScope(cgroup string) (string, error) {
	slice, rest, _ := strings.Cut(cgroup, ":")
	prefix, name, ok := strings.Cut(rest, ":")
	if !ok || name == "" || strings.ContainsAny(name, ":/") || strings.Contains(prefix, "/") {
		return "", errors.New("want slice:prefix:name")
	}
	if slice == "" {
		slice = "system.slice" // the runtimes' default
	}
	parent, err := expandSlice(slice)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(name, sliceSuffix) {
		name = prefix + "-" + name + ".scope"
	}
	return path.Join(parent, name), nil
}

// expandSlice returns the directory of a slice unit: a dash in its name stands for one level of nesting, so that
// "a-b.slice" is /a.slice/a-b.slice, and "-.slice" is the root.
func expandSlice(slice string) (string, error) {
	name, ok := strings.CutSuffix(slice, sliceSuffix)
	switch {
	case !ok || name == "" || strings.Contains(name, "/"):
		return "", fmt.Errorf("%q is no slice", slice)
	case name == "-":
		return "/", nil
	case strings.Contains("-"+name+"-", "--"):
		return "", fmt.Errorf("slice %q has an empty part", slice)
	}
	var dir strings.Builder
	for i, char := range name {
		if char == '-' {
			dir.WriteString("/" + name[:i] + sliceSuffix)
		}
	}
	return dir.String() + "/" + slice, nil
}
