package cgroup

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDirectory(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/":                         "/",
		"/kubepods/pod1/id":         "/kubepods/pod1/id",
		"//a/./b/../c/":             "/a/c",
		"/../..":                    "/",
		"/k8s.io/id":                "/k8s.io/id",
		"-.slice":                   "/",
		"a.slice":                   "/a.slice",
		"a-b-c.slice":               "/a.slice/a-b.slice/a-b-c.slice",
		"a-b.slice:cri:id":          "/a.slice/a-b.slice/cri-id.scope",
		"a.slice:cri:b.slice":       "/a.slice/b.slice",
		"-.slice:cri:id":            "/cri-id.scope",
		":crio:id":                  "/system.slice/crio-id.scope",
		"kubepods.slice:crio:pod_1": "/kubepods.slice/crio-pod_1.scope",
	} {
		got, err := Directory(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
}

// The directory of a cgroup stays below the root and has one spelling only, for any name that a runtime gives the
// cgroup.
func FuzzDirectory(f *testing.F) {
	for _, seed := range []string{cgroupfs, systemd, "-.slice", "a--b.slice", "/../x", "a.slice:p:..", "::", "a.slice:..:/", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		dir, err := Directory(in)
		if err != nil {
			return
		}
		require.True(t, path.IsAbs(dir), "%q gave %q", in, dir)
		require.Equal(t, path.Clean(dir), dir, in)
		if strings.HasSuffix(in, sliceSuffix) && !strings.ContainsAny(in, "/:") && dir != "/" {
			require.Equal(t, in, path.Base(dir), "the directory of a slice ends with the slice's own name")
			require.Equal(t, strings.Count(in, "-")+1, strings.Count(dir, "/"), "each dash is a level")
		}
	})
}
