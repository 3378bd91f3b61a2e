// Package uninstall removes the daemon's files from the host when its DaemonSet does not run a daemon there any more.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

const (
	// askWithin is the longest time of the requests for the DaemonSet and the node.
	askWithin = 3 * time.Second
	// hookGrace is how long the hook's program stays after the last container got a hook: the runtime has started the hook
	// by then. It is also long enough for another daemon in standby to take the lock of the run folder.
	hookGrace = 3 * time.Second
	// noteGrace is how long the processes in the waiting room have to leave, and to write a note, once the configuration
	// is removed. They look every 250 ms. It is also how long a chain that has begun has to run the program.
	noteGrace = time.Second
)

// Options say which daemon has ended, and what it has put on the host.
type Options struct {
	Client    kube.Interface
	DaemonSet string // as NAMESPACE/NAME
	NodeName  string
	// Seen says that the DaemonSet was there when the daemon began, by [See].
	Seen bool
	// RunDir is the daemon's folder, which has the lock, and Version the program's version, which the lock shows.
	RunDir, Version string
	// Files are what the daemon leaves on the host, without the notes in RunDir and the files of the waiting room.
	Files []string
	// Room says that the daemon may have installed the waiting room in these folders, with this socket.
	Room                  bool
	CNIConfDir, CNIBinDir string
	Socket                string
	Log                   logrus.FieldLogger
}

// Run removes the files from the host if the DaemonSet was removed or does not select the node. If only the waiting room
// was switched off, or has other folders now, it removes the files of that. It blocks for some seconds if it removes
// files. All files stay if the API server does not confirm that, or if another daemon has taken over. Call it when the
// daemon has ended.
func Run(ctx context.Context, o Options) error {
	ask, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	gone, roomless, err := uninstalled(ask, o)
	log := o.Log.WithField("daemonset", o.DaemonSet)
	if err != nil {
		log.WithError(err).Warn("cannot tell whether the DaemonSet was removed: the daemon's files stay on the host")
		return nil
	}
	why, remove := "the DaemonSet was removed, or does not select this node any more", o.removeFiles
	if !gone {
		why, remove = "the waiting room was switched off, or got other folders", o.removeRoom
		if !roomless || !o.Room {
			return nil
		}
	}
	time.Sleep(hookGrace)
	lock, holder, err := rundir.TryLock(o.RunDir, o.Version)
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	if lock == nil {
		log.WithField("holder", holder).Info(why + ", and another daemon has taken over: the files stay on the host")
		return nil
	}
	if err := errors.Join(remove(), lock.Close()); err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	log.Info(why + ": took its files off the host")
	return nil
}

// uninstalled reports whether the DaemonSet was removed, is being removed or does not select the node, so that not only its
// pod is replaced, and whether it has no waiting room. It fails unless the API server answers about the object itself: a
// missing permission, a rejected token or a page of a proxy prove nothing, and without the hook's program, containers that
// have the hook fail.
func uninstalled(ctx context.Context, o Options) (gone, roomless bool, err error) {
	namespace, name, _ := strings.Cut(o.DaemonSet, "/")
	set, err := o.Client.DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		roomless = slices.ContainsFunc(set.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return o.refusesRoom(c.Args) })
		return set.DeletionTimestamp != nil || excludes(ctx, o.Client, set, o.NodeName), roomless, nil
	case notFound(err) && o.Seen:
		return true, true, nil
	case notFound(err):
		return false, false, fmt.Errorf("it is not there, and was not seen since this daemon began: %w", err)
	default:
		return false, false, err
	}
}

// excludes reports whether the node selector or the affinity of a DaemonSet keeps its pods from a node. It is false if the
// API server does not say that.
func excludes(ctx context.Context, client kube.Interface, set *appsv1.DaemonSet, name string) bool {
	node, err := client.Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	fits, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: set.Spec.Template.Spec}).Match(node)
	return err == nil && !fits
}

// refusesRoom reports whether a container's arguments switch the waiting room off, or name other folders for it: the next
// daemon does not look into these. The last flag counts.
func (o Options) refusesRoom(args []string) bool {
	last := map[string]string{"--cni-conf-dir": o.CNIConfDir, "--cni-bin-dir": o.CNIBinDir}
	for _, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")                       // the value of another flag may be the next argument
		if (ok || flag == "--cni") && !strings.Contains(value, "$(") { // kubelet replaces that by what is not known here
			last[flag] = value
		}
	}
	return last["--cni"] == "off" || last["--cni-conf-dir"] != o.CNIConfDir || last["--cni-bin-dir"] != o.CNIBinDir
}

// removeRoom removes the files of the waiting room, and blocks for noteGrace.
func (o Options) removeRoom() error {
	return cni.Remove(cni.Options{ConfDir: o.CNIConfDir, BinDir: o.CNIBinDir, Socket: o.Socket}, noteGrace)
}

// removeFiles removes all files. With the waiting room, it blocks for noteGrace.
func (o Options) removeFiles() error {
	var faults []error
	if o.Room {
		faults = append(faults, o.removeRoom())
	}
	faults = append(faults, os.RemoveAll(filepath.Join(o.RunDir, wire.NoteFolder)))
	for _, file := range o.Files {
		faults = append(faults, wholefile.Remove(file))
	}
	return errors.Join(faults...)
}
