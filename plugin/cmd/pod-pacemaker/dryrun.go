package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// finding is what a dry run found out about one thing that the daemon needs.
type finding struct {
	name, text string
	hinders    bool // the daemon would not pace as configured
}

// dryRun says what run would do. The configuration is judged as run does; what
// the node lacks is a failure, for it may be mended while the daemon runs.
func (p *program) dryRun(ctx context.Context, f *runFlags) error {
	if _, err := p.makeDaemon(f, textLogger(levelError, p.stderr)); err != nil {
		return err
	}
	config, err := configFinding(f.Options)
	if err != nil {
		return err
	}
	mode := "with the API server"
	if f.Standalone() {
		mode = "standalone"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "pod-pacemaker %s, to pace the pods of %s, %s:\n", f.Version, f.NodeName, mode)
	hindered := 0
	findings := []finding{config}
	if !f.Standalone() {
		findings = append(findings, apiFinding(ctx, f.Options))
	}
	for _, found := range append(findings,
		runtimeFinding(f.NRISocket), gateFinding(f.Options), socketFinding(ctx, f.Options), httpFinding(ctx, f.HTTPAddress),
	) {
		mark := "ok"
		if found.hinders {
			mark = "!!"
			hindered++
		}
		fmt.Fprintf(&text, "  %s  %-8s %s\n", mark, found.name, clean(found.text))
	}
	if _, err := fmt.Fprint(p.stdout, text.String()); err != nil {
		return err
	}
	if hindered > 0 {
		return fmt.Errorf("%s to fix before pods are paced as configured", plural(hindered, "thing"))
	}
	return nil
}

func configFinding(o plugin.Options) (finding, error) {
	if o.ConfigFile == "" {
		if o.Standalone() {
			return finding{"config", "none: no pod is held back (--config names a file)", true}, nil
		}
		return finding{"config", "the PacemakerConfig objects that select this node", false}, nil
	}
	found, err := crd.Load(o.ConfigFile)
	if err != nil {
		return finding{}, invalid(o.ConfigFile, err)
	}
	text := o.ConfigFile + ":"
	if c := found.Config; c != nil {
		text += fmt.Sprintf(" %q: %s", c.Name, admin.NewLimits(plugin.SettingsOf(c.Spec, runtime.NumCPU())))
	}
	if n := len(found.Policies); n > 0 {
		text += " " + plural(n, "StartPolicy")
	}
	if !o.Standalone() {
		text += "; where no PacemakerConfig object selects this node"
	}
	return finding{"config", text, false}, nil
}

// apiPatience is how long the API server has to answer.
const apiPatience = 5 * time.Second

func apiFinding(ctx context.Context, o plugin.Options) finding {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	if err := plugin.AskAPIServer(ctx, o); err != nil {
		return finding{"api", err.Error(), true}
	}
	return finding{"api", "the API server answers", false}
}

func runtimeFinding(socket string) finding {
	info, err := os.Stat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return finding{"runtime", "there is no " + socket + ": does containerd run, with NRI enabled? (It is off by default in 1.7: see deploy/containerd/nri.toml)", true}
	case err != nil:
		return finding{"runtime", err.Error(), true}
	case info.Mode().Type() != fs.ModeSocket:
		return finding{"runtime", socket + " is not a socket", true}
	}
	if err := unix.Access(socket, unix.W_OK); err != nil {
		return finding{"runtime", fmt.Sprintf("%s: %v: the daemon needs root", socket, err), true}
	}
	return finding{"runtime", socket + " is there", false}
}

func gateFinding(o plugin.Options) finding {
	switch {
	case o.Gate == plugin.GateNever:
		return finding{"gate", "not used: --gate never", false}
	case o.GatePath == "":
		return finding{"gate", "not used: --gate-path is empty", false}
	}
	if fault := plugin.HookFault(o.GatePath); fault != "" {
		return finding{"gate", fault + ": 'pod-pacemaker install-gate' puts it there; without it pods are refused instead", true}
	}
	return finding{"gate", fmt.Sprintf("%s, up to %s for each wait", o.GatePath, human(o.GateTimeout)), false}
}

func socketFinding(ctx context.Context, o plugin.Options) finding {
	_, err := admin.NewClient(o.AdminPath()).Status(ctx)
	if !errors.Is(err, admin.ErrNoDaemon) {
		return finding{"sockets", "another daemon answers at " + o.AdminPath() + ": this one would stand by until that ends", true}
	}
	if err := writable(o.RunDir); err != nil {
		return finding{"sockets", err.Error(), true}
	}
	return finding{"sockets", fmt.Sprintf("%s and %s", o.SocketPath(), o.AdminPath()), false}
}

// writable tells whether files can be made in dir, or dir itself where it is not there.
func writable(dir string) error {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	switch {
	case errors.Is(err, fs.ErrNotExist) && dir != "/":
		return writable(filepath.Dir(dir))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be written: the daemon needs root", dir)
	case err != nil:
		return fmt.Errorf("%s cannot be written: %w", dir, err)
	}
	return nil
}

func httpFinding(ctx context.Context, address string) finding {
	if address == "" {
		return finding{"http", "no metrics: --http is empty", false}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return finding{"http", err.Error(), true}
	}
	return finding{"http", "/metrics, /healthz and /readyz at " + address, false}
}
