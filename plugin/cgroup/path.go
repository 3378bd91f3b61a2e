package cgroup

import (
	"errors"
	"path"
	"strings"
)

const sliceSuffix = ".slice"

// directory returns the directory of a cgroup below its hierarchy's root, always absolute and clean. Of a name that
// systemd would refuse, it is one that does not exist.
//
// "slice:prefix:name", which the runtime hands to systemd, is the scope unit prefix-name.scope in the slice, or the unit
// "name" itself if that is a slice.
func directory(cgroup string) (string, error) {
	slice, rest, inSlice := strings.Cut(cgroup, ":")
	switch {
	case strings.HasPrefix(cgroup, "/"):
		return path.Clean(cgroup), nil
	case !inSlice && strings.HasSuffix(cgroup, sliceSuffix):
		return expandSlice(cgroup), nil
	case !inSlice:
		return "", errors.New("neither absolute nor of systemd's form")
	case slice == "":
		slice = "system.slice" // the runtimes' default
	}
	prefix, name, _ := strings.Cut(rest, ":")
	if !strings.HasSuffix(name, sliceSuffix) {
		name = prefix + "-" + name + ".scope"
	}
	return path.Join(expandSlice(slice), name), nil
}

// expandSlice returns the directory of a slice unit: a dash in its name stands for one level of nesting, so that
// "a-b.slice" is /a.slice/a-b.slice, and "-.slice" is the root.
func expandSlice(slice string) string {
	name := strings.TrimSuffix(slice, sliceSuffix)
	if name == "-" {
		return "/"
	}
	dir := "/"
	for i, char := range name {
		if char == '-' {
			dir = path.Join(dir, name[:i]+sliceSuffix)
		}
	}
	return path.Join(dir, slice)
}
