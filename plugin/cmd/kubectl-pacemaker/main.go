// Kubectl-pacemaker is a plugin of kubectl. It shows what the daemons of all nodes do, and why a
// pod waits, with the permissions of the user.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "dev"

// arguments returns the arguments of a command line. If the program runs as kubectl_complete-pacemaker, by which name kubectl
// asks a plugin how to complete its command line, they ask cobra to complete it.
func arguments(line []string) []string {
	if strings.TrimSuffix(filepath.Base(line[0]), ".exe") == "kubectl_complete-pacemaker" {
		return append([]string{cobra.ShellCompRequestCmd}, line[1:]...)
	}
	return line[1:]
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, arguments(os.Args), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
