package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// uninstallAsk bounds the question whether the DaemonSet is still there.
	uninstallAsk = 3 * time.Second
	// hookGrace is how long the hook stays after the last container was given it:
	// the runtime has begun to run it by then. It is also more than time enough for
	// another daemon that stood by to take the run folder over.
	hookGrace = 3 * time.Second
)

// leave takes the daemon's files off the host, if the DaemonSet that ran it was
// removed. To be called when the daemon has ended; it blocks for some seconds
// then. Where nobody can tell, or another daemon has taken over, all stays.
func (d *Daemon) leave(ctx context.Context) error {
	namespace, name, ok := strings.Cut(d.options.DaemonSet, "/")
	if !ok || d.client == nil {
		return nil
	}
	ask, cancel := context.WithTimeout(ctx, uninstallAsk)
	defer cancel()
	gone, denied, err := uninstalled(ask, d.client, namespace, name)
	log := d.options.Log.WithField("daemonset", d.options.DaemonSet)
	if err != nil {
		log.WithError(err).Warn("cannot tell whether the DaemonSet was removed: the daemon's files stay on the host")
		return nil
	}
	if !gone {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(hookGrace):
	}
	if denied && d.mayReadNode(ctx) {
		log.Warn("the daemon may not ask for its DaemonSet, but has its other permissions: its files stay on the host")
		return nil
	}
	lock, holder, err := d.options.tryLock()
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	if lock == nil {
		log.WithField("holder", holder).Info("the DaemonSet was removed, and another daemon has taken over: the files stay on the host")
		return nil
	}
	err = errors.Join(d.options.removeFiles(), lock.release())
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	log.Info("the DaemonSet was removed: took the daemon's files off the host")
	return nil
}

// uninstalled tells whether a DaemonSet was removed, or is about to be, as
// opposed to one of its pods. Its permissions go with it, so that their lack says
// the same; denied says that this is all there is to tell it by.
func uninstalled(ctx context.Context, client kubernetes.Interface, namespace, name string) (gone, denied bool, err error) {
	set, err := client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && set.DeletionTimestamp == nil {
		// The pods of a namespace may end before the DaemonSet that made them.
		var space *corev1.Namespace
		space, err = client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if err == nil && space.DeletionTimestamp == nil {
			return false, false, nil
		}
	}
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return true, false, nil
	case isDenied(err):
		return true, true, nil
	default:
		return false, false, err
	}
}

func isDenied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// mayReadNode tells whether the daemon still has another of its permissions.
func (d *Daemon) mayReadNode(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, uninstallAsk)
	defer cancel()
	_, err := d.client.CoreV1().Nodes().Get(ctx, d.options.NodeName, metav1.GetOptions{})
	return !isDenied(err)
}

// removeFiles removes what the daemon and install-gate put on the host. The
// folders stay where they are mounted or not empty.
func (o Options) removeFiles() error {
	var faults []error
	remove := func(pattern string) {
		names, err := filepath.Glob(pattern)
		faults = append(faults, err)
		for _, name := range names {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				faults = append(faults, err)
			}
		}
	}
	if o.GatePath != "" {
		dir, name := filepath.Split(o.GatePath)
		remove(o.GatePath)
		remove(filepath.Join(dir, "."+name+".*")) // of an installation that was cut short
	}
	for _, file := range o.runFiles() {
		remove(file)
		remove(file + ".*")
	}
	return errors.Join(faults...)
}

// runFiles are all files that a daemon keeps.
func (o Options) runFiles() []string {
	files := []string{o.SocketPath(), o.AdminPath(), o.lockPath(), o.sandboxesPath()}
	if o.StateDir != "" {
		files = append(files, o.lastGoodPath(), o.policiesPath())
	}
	return files
}
