package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/verdicts"
)

// run runs a shard.
type run struct {
	show                         io.Writer
	out, pkg, tags, known, match string
	timeout                      time.Duration
	part, parts                  int
}

func (r run) all(ctx context.Context) error {
	commit, err := commit(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pod-pacemaker-verdicts-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "scenarios.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-tags", r.tags, "-o", program, r.pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build of %s: %w\n%s", r.pkg, err, out)
	}
	names, err := r.scenarios(ctx, program)
	if err != nil {
		return err
	}
	known, err := verdicts.Read(r.known)
	if err != nil {
		return err
	}
	done, err := verdicts.Read(r.out)
	if err != nil {
		return err
	}
	mine := verdicts.Shard(names, verdicts.Latest(known), r.part, r.parts)
	left := slices.DeleteFunc(slices.Clone(mine), func(name string) bool {
		return slices.ContainsFunc(done, func(v verdicts.Verdict) bool {
			return v.Scenario == name && v.Passed && v.Commit == commit && !strings.HasSuffix(commit, dirty)
		})
	})
	fmt.Fprintf(r.show, "shard %d/%d: %d of %d scenarios, %d passed at %s before\n", r.part, r.parts, len(mine), len(names), len(mine)-len(left), commit)
	if len(left) == 0 {
		return nil
	}
	return r.scenariosOf(ctx, program, commit, left)
}

// scenarios returns the names of the scenarios that match.
func (r run) scenarios(ctx context.Context, program string) (names []string, err error) {
	match, err := regexp.Compile(r.match)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "-test.list", "^Test")
	cmd.Dir = r.pkg
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list of the scenarios of %s: %w", r.pkg, err)
	}
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, "Test") && match.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("no scenario of %s matches %q", r.pkg, r.match)
	}
	return names, nil
}

// event is a line of go test -json.
type event struct {
	Time                          time.Time
	Action, Package, Test, Output string
	Elapsed                       float64
}

// scenariosOf runs these scenarios in one process, and adds their verdicts.
func (r run) scenariosOf(ctx context.Context, program, commit string, names []string) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", program, "-test.v=test2json", "-test.count=1",
		"-test.timeout", r.timeout.String(), "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir, cmd.Stderr = r.pkg, os.Stderr
	// An interrupted run ends as the scenarios end it, so that nothing of a node is left.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, time.Minute
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	k := keeper{run: r, commit: commit, output: map[string]*bytes.Buffer{}, left: len(names)}
	return errors.Join(k.follow(stdout), cmd.Wait(), k.end())
}

// read adds the verdicts of a run that is over, from the output of go test -json. Which tests failed is for that run to say.
func (r run) read(ctx context.Context, events string) error {
	commit, err := commit(ctx)
	if err != nil {
		return err
	}
	file, err := os.Open(events)
	if err != nil {
		return err
	}
	defer file.Close()
	r.show = io.Discard
	k := keeper{run: r, commit: commit, output: map[string]*bytes.Buffer{}}
	if err := k.follow(file); err != nil {
		return fmt.Errorf("%s: %w", events, err)
	}
	return nil
}

// figure is a figure as suite.Figures notes it.
var figure = regexp.MustCompile(`(?m)^ +\w+\.go:\d+: Test\w+(?:/\S+)?: (.*)$`)

// keeper adds the verdicts of scenarios as they end.
type keeper struct {
	run
	commit string
	output map[string]*bytes.Buffer // of the scenarios under way, with that of their parts
	failed []string
	left   int
}

// follow adds the verdicts that these events tell.
func (k *keeper) follow(events io.Reader) error {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := k.happened(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (k *keeper) happened(line []byte) error {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("test2json: %w: %s", err, line)
	}
	name, _, part := strings.Cut(e.Test, "/")
	switch out := k.output[name]; {
	case e.Package != "" && path.Base(e.Package) != path.Base(k.pkg): // of a run of several packages
		return nil
	case name == "":
		_, err := io.WriteString(k.show, e.Output)
		return err
	case e.Action == "run" && !part:
		k.output[name] = &bytes.Buffer{}
	case e.Action == "output" && out != nil:
		out.WriteString(e.Output)
	case !part && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		return k.ended(e, out.String())
	}
	return nil
}

// ended adds a verdict, and shows it: with all output if the scenario did not pass.
func (k *keeper) ended(e event, output string) error {
	k.left--
	v := verdicts.Verdict{Scenario: e.Test, Passed: e.Action == "pass", Seconds: e.Elapsed, Commit: k.commit, At: e.Time.UTC().Truncate(time.Second), Machine: machine()}
	for _, found := range figure.FindAllStringSubmatch(output, -1) {
		v.Figures = append(v.Figures, found[1])
	}
	if !v.Passed {
		k.failed = append(k.failed, e.Test)
		fmt.Fprint(k.show, output)
	}
	fmt.Fprintf(k.show, "%s %s (%.0f s)\n", strings.ToUpper(e.Action), e.Test, e.Elapsed)
	return verdicts.Append(k.out, v)
}

// end says what did not pass.
func (k *keeper) end() error {
	switch {
	case len(k.failed) > 0:
		return fmt.Errorf("not passed: %s", strings.Join(k.failed, ", "))
	case k.left > 0:
		return fmt.Errorf("%d scenarios did not end", k.left)
	}
	return nil
}

// dirty ends the commit of sources with changes.
const dirty = "-dirty"

// commit returns the commit of the sources, with dirty if they have changes.
func commit(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty="+dirty).Output()
	if err != nil {
		return "", fmt.Errorf("the commit of the sources: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// machine says on what the scenarios run.
func machine() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		release = []byte("of unknown release")
	}
	return fmt.Sprintf("%d CPUs, %s, Linux %s", runtime.NumCPU(), runtime.GOARCH, strings.TrimSpace(string(release)))
}
