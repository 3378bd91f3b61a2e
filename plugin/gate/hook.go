package gate

import (
	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// Args are the arguments of the hook.
type Args = wire.Args

// Hook returns the createRuntime hook that runs the program at path with the arguments a. The
// hook has no timeout: when a hook times out, the runtime lets the start fail.
func Hook(path string, a Args) *api.Hook {
	return &api.Hook{Path: path, Args: append([]string{path}, a.Argv()...)}
}
