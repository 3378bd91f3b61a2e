package nri

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/faultlog"
)

// When a plugin registers, NRI lists all pods and containers to it, in messages of at most 4 MiB. If a message is too
// large, recalcObjsPerSyncMsg (nri/pkg/adaptation/plugin.go, 0.12) takes fewer pods and containers at a time, in
// proportion to the excess, but at least a tenth fewer. It then takes 4 of each if fewer than 8 remain in all, also where
// fewer than 4 exist: the slice is out of range, and the runtime ends. A message of 8 or fewer that is too large ends the
// registration.
//
// Neither happens if the largest nine fit into one message, in whatever order the runtime lists them. A message that is
// too large has k >= 10 pods and containers then, and its size is at most k/9 of the limit. So the next has more than
// min(0.9, 9/k)*k-2 >= 7 of them, that is 8 or more. And messages of 8 always fit. With eight instead of nine, 9 may
// become 7.
//
// A split can still leave pods or containers for which no message has a place, where one kind is rare. That registration
// times out, and the next one meets another order.
const (
	largest    = 9
	mostListed = 4 << 20 // bytes
	// besides is for what a bundle does not show, in bytes: labels, kubelet's annotations, the image's name, and the
	// state. All else is shorter in NRI's message than in the JSON of the bundle. A pod with more labels and annotations
	// counts once more, with those.
	besides = 16 << 10
)

// listing measures what the runtime has to list, by the sizes of the OCI bundles. It is not safe for concurrent use.
type listing struct {
	dir         string                         // holds a folder for each sandbox and container that runs; empty if nothing is measured
	inContainer bool                           // one of them is the daemon's
	metadata    func(least int) map[string]int // Options.Metadata
	log         logrus.FieldLogger
	faults      faultlog.Log
	largest     []bundle // that were too large last, and why: so the same bundles are read only once
	why         *delayed
	owners      map[string]owner // of the bundles that containers has read, by their names
}

// owner is the pod of a bundle.
type owner struct {
	pod, uid  string
	container bool // the bundle is a container's, not the sandbox's
	gone      bool // the API server had no such pod when that was known last
}

// bundle is the folder of a sandbox or container, and the size of its config.json. If it has a pod, it stands for the
// labels and annotations of that pod.
type bundle struct {
	name, pod string
	size      int64
}

// tooLarge returns why the runtime could not list its pods, or nil if it can or that is not known.
func (l *listing) tooLarge() error {
	if l.dir == "" {
		return nil
	}
	found, err := l.bundles()
	l.faults.Try(l.log, err, "the containers of the node are not known: the daemon registers whatever their sizes, and if that ends the runtime, it stays away for a while",
		"the containers of the node are known")
	found = found[:min(len(found), largest)]
	var size int64
	for _, b := range found {
		size += b.size + besides
	}
	if size <= mostListed {
		return nil
	}
	if !slices.Equal(found, l.largest) {
		text := func(pods string) string {
			return fmt.Sprintf("waiting to register: the %d largest pods and containers of the node have %s of environment and other settings%s, and containerd, which lists them in messages of %s, may end in the attempt; "+
				"pods start unpaced until some of these have ended", len(found), mebibytes(size), pods, mebibytes(mostListed))
		}
		l.largest = found
		l.why = &delayed{ListingTooLarge, text(l.podsOf(found)), text(""), logrus.Fields{"bytes": size}}
	}
	return l.why
}

// bundles returns all bundles, the largest first.
func (l *listing) bundles() (found []bundle, err error) {
	folders, err := l.folders()
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		info, err := os.Stat(l.config(folder.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being made or removed
		}
		if err != nil {
			return nil, err
		}
		found = append(found, bundle{name: folder.Name(), size: info.Size()})
	}
	if l.metadata != nil {
		for pod, size := range l.metadata(besides) {
			found = append(found, bundle{pod: pod, size: int64(size)})
		}
	}
	slices.SortFunc(found, func(a, b bundle) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name), cmp.Compare(a.pod, b.pod))
	})
	return found, nil
}

// folders returns the folders of all bundles. After a boot, the runtime makes the folder that holds them with the first
// one. It is missing, too, where another containerd has this state, with folders of other namespaces.
func (l *listing) folders() ([]os.DirEntry, error) {
	folders, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if namespaces, other := os.ReadDir(filepath.Dir(l.dir)); other == nil && len(namespaces) == 0 {
			err = nil
		}
	}
	if err == nil && len(folders) == 0 && l.inContainer {
		err = fmt.Errorf("%s has no container, not even the daemon's: --containerd-state (of the chart: containerd.state) must be the folder of containerd's state", l.dir)
	}
	return folders, err
}

func (l *listing) config(bundle string) string { return filepath.Join(l.dir, bundle, "config.json") }

// podsOf returns the names of the pods of the bundles, with the sizes of their bundles, as " (namespace/name (1.0 MiB))".
// It returns nothing if none is known.
func (l *listing) podsOf(bundles []bundle) string {
	var pods []string
	sizes := map[string]int64{}
	for _, b := range bundles {
		pod := b.pod
		if pod == "" {
			owner, err := l.ownerOf(b.name)
			if err != nil {
				continue // its pod is not named
			}
			pod = owner.pod
		}
		if sizes[pod] == 0 {
			pods = append(pods, pod)
		}
		sizes[pod] += b.size
	}
	for i, pod := range pods {
		pods[i] = fmt.Sprintf("%s (%s)", pod, mebibytes(sizes[pod]))
	}
	if len(pods) == 0 {
		return ""
	}
	return " (" + strings.Join(pods, ", ") + ")"
}

// ownerOf returns the pod of a bundle. The error wraps [fs.ErrNotExist] if the bundle is gone.
func (l *listing) ownerOf(bundle string) (o owner, err error) {
	var config struct{ Annotations map[string]string }
	content, err := os.ReadFile(l.config(bundle))
	if err == nil {
		err = json.Unmarshal(content, &config)
	}
	if err != nil {
		return owner{}, err
	}
	const prefix = "io.kubernetes.cri."
	return owner{
		pod: config.Annotations[prefix+"sandbox-namespace"] + "/" + config.Annotations[prefix+"sandbox-name"],
		uid: config.Annotations[prefix+"sandbox-uid"], container: config.Annotations[prefix+"container-type"] == "container",
	}, nil
}

// uidLength is the length of the UIDs that the API server gives. The UID of a static pod, for which the API server may
// have no mirror, is shorter.
const uidLength = 36

// containers returns the pods that have a container with a process, by UID; nil if that is not known.
func (l *listing) containers() (of map[string]bool) {
	folders, err := l.folders()
	if l.dir == "" || err != nil {
		l.owners = nil
		return nil // tooLarge logs it
	}
	owners, of, known := make(map[string]owner, len(folders)), map[string]bool{}, true
	for _, folder := range folders {
		o, read := l.owners[folder.Name()]
		if !read {
			o, err = l.ownerOf(folder.Name())
			switch {
			case errors.Is(err, fs.ErrNotExist): // it is being made or removed
				continue
			case err != nil || o.container && o.uid == "":
				known = false // it may be of any pod
				continue
			}
		}
		owners[folder.Name()] = o
		if o.container {
			of[o.uid] = true
		}
	}
	l.owners = owners
	if !known {
		return nil
	}
	return of
}

// gone returns a pod, as "namespace/name", that has a container although the API server has no such pod, or "" if there is
// none, as containers has found them. While the pods that stops knows may not be those that the API server has, what was
// found before still holds.
//
// Such a pod was deleted by force. If it had been deleted with a grace period before, that stop goes on: with kubelet 1.36
// and containerd 2.4, a pod of years runs on, and the stop holds NRI's lock.
func (l *listing) gone(stops StopSource) (pod string) {
	current := stops.Healthy()
	for _, bundle := range slices.Sorted(maps.Keys(l.owners)) {
		o := l.owners[bundle]
		if current {
			o.gone = !stops.Known(o.uid)
			l.owners[bundle] = o
		}
		if len(o.uid) == uidLength && o.container && o.gone {
			pod = o.pod
		}
	}
	return pod
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
