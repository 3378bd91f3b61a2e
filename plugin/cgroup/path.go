package cgroup

import (
	"errors"
	"path"
	"strings"
)

const sliceSuffix = ".slice"

// Directory returns the directory of a cgroup below its hierarchy's root, always absolute and clean. The name is one that
// [Reader.CPUSeconds] takes; of one that systemd would refuse, Directory returns a directory that does not exist. The
// error says that the name is of neither form.
//
// "slice:prefix:name", which the runtime hands to systemd, is the scope unit prefix-name.scope in the slice, or the unit
// "name" itself if that is a slice.
func Directory(cgroup string) (string, error) {
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
