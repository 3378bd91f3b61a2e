package waiting

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hookFile makes a file that looks like the hook.
func hookFile(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte("#!"), mode))
	require.NoError(t, os.Chmod(path, mode)) // regardless of the umask
	return path
}

func TestHookFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) string { return hookFile(t, filepath.Join(dir, name), mode) }
	assert.Empty(t, HookFault(file("good", 0o755)))
	assert.Contains(t, HookFault(filepath.Join(dir, "absent")), "cannot be used")
	assert.Contains(t, HookFault(file("plain", 0o644)), "not an executable")
	assert.Contains(t, HookFault(file("group", 0o775)), "written by group")
	assert.Contains(t, HookFault(file("others", 0o757)), "written by group or others")
	assert.Contains(t, HookFault(dir), "not an executable")
	assert.Contains(t, HookFault(filepath.Join(dir, "good", "below")), "cannot be used")
}

func TestAHookInAFolderThatOthersCanWriteIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	hook := hookFile(t, filepath.Join(dir, "bin", "hook"), 0o755)
	for mode, fault := range map[os.FileMode]string{
		0o755: "", 0o700: "", os.ModeSticky | 0o777: "", os.ModeSticky | 0o775: "",
		0o775: "can be written by group or others", 0o757: "can be written by group or others",
	} {
		require.NoError(t, os.Chmod(dir, mode))
		got := HookFault(hook)
		if fault == "" {
			assert.Empty(t, got, mode)
			continue
		}
		assert.Contains(t, got, fault, mode)
		assert.Contains(t, got, dir+", which leads to it", mode)
	}
}

func TestALinkToTheHookIsFollowedIfOnlyRootCanChangeIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"bin", "open"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		hookFile(t, filepath.Join(dir, name, "hook"), 0o755)
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "open"), 0o777))
	link := func(to, name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Symlink(to, path))
		return path
	}
	assert.Empty(t, HookFault(link("bin/hook", "relative")))
	assert.Empty(t, HookFault(link(filepath.Join(dir, "bin", "hook"), "absolute")))
	assert.Empty(t, HookFault(filepath.Join(link("bin/../bin", "folder"), "hook")))
	assert.Contains(t, HookFault(link("open/hook", "unsafe")), "can be written by group or others")
	assert.Contains(t, HookFault(filepath.Join(dir, "open", "hook")), "can be written by group or others")
	assert.Contains(t, HookFault(link("circle", "circle")), "too many links")
	assert.Contains(t, HookFault(link("nowhere", "dangling")), "cannot be used")
}

func TestAHookOnAPathOfAnotherUserIsNotUsed(t *testing.T) {
	t.Parallel()
	hook := hookFile(t, filepath.Join(t.TempDir(), "hook"), 0o755)
	assert.Contains(t, walk{owners: [2]uint32{0, 0}, flags: mountFlags}.fault("/nowhere"), "cannot be used", "all folders before it belong to root")
	another := uint32(os.Geteuid()) + 1
	others := walk{owners: [2]uint32{another, another}, flags: mountFlags}
	assert.Contains(t, others.fault(hook), "not to root")
	assert.Contains(t, others.fault("/nowhere"), "there is no /nowhere", "the owner of / says nothing: a container has its own")
}

func TestAHookOnAMountThatBarsExecutionIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount := filepath.Join(dir, "mount")
	require.NoError(t, os.MkdirAll(filepath.Join(mount, "bin"), 0o755))
	hook := hookFile(t, filepath.Join(mount, "bin", "hook"), 0o755)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(hook, link))
	mounted := func(flags map[string]int64) walk {
		return walk{owners: [2]uint32{0, uint32(os.Geteuid())}, flags: func(path string) (int64, error) {
			for at := path; at != "/"; at = filepath.Dir(at) {
				if f, is := flags[at]; is {
					return f, nil
				}
			}
			return unix.ST_RELATIME, nil
		}}
	}
	for path, barred := range map[string]map[string]int64{
		hook: {mount: unix.ST_NOEXEC | unix.ST_NOSUID},
		link: {mount: unix.ST_NOEXEC, filepath.Join(mount, "bin"): unix.ST_NOEXEC | unix.ST_RDONLY},
	} {
		assert.Equal(t, "the hook "+path+" cannot be executed: "+mount+" is mounted noexec", mounted(barred).fault(path))
	}
	assert.Empty(t, mounted(map[string]int64{mount: unix.ST_NOEXEC, filepath.Join(mount, "bin"): unix.ST_NOSUID}).fault(hook), "the hook's own folder is another mount")
	failing := walk{owners: [2]uint32{0, uint32(os.Geteuid())}, flags: func(string) (int64, error) { return 0, unix.EIO }}
	assert.Contains(t, failing.fault(hook), unix.EIO.Error())
}
