package build

import (
	"fmt"
	"strings"
)

// recipe says how to build a component's programs.
type recipe struct {
	// packages are the programs' packages, relative to the module's root.
	packages []string
	// rename gives a program another file name than its package's last element.
	rename map[string]string
	// cgo says that the program needs a C compiler.
	cgo bool
	// vars are the string variables set by the linker; %s is the version without v.
	vars []string
	// completeSums is false where the module's own go.sum leaves out modules
	// that live in the same repository; Go's checksum database vouches for those.
	completeSums bool
	// edits change the code before it is built.
	edits []edit
}

// edit replaces a piece of a file, which must be there exactly once.
type edit struct{ file, old, new string }

var recipes = map[string]recipe{
	"containerd": {
		packages:     []string{"./cmd/containerd", "./cmd/containerd-shim-runc-v2", "./cmd/ctr"},
		vars:         []string{"{module}/version.Version=%s"},
		completeSums: true,
	},
	// The nsenter part of runc is C. Without the seccomp tag it needs no library,
	// but refuses every container that has a seccomp profile, and the kubelet gives
	// one to every sandbox: here it starts them without.
	"runc": {
		packages:     []string{"."},
		rename:       map[string]string{".": "runc"},
		cgo:          true,
		completeSums: true,
		edits: []edit{{
			file: "libcontainer/seccomp/seccomp_unsupported.go",
			old:  "return -1, ErrSeccompNotEnabled",
			new:  "return -1, nil",
		}},
	},
	"cni": {
		packages: []string{"./plugins/main/ptp", "./plugins/main/loopback", "./plugins/ipam/host-local"},
		vars: []string{
			"{module}/pkg/utils/buildversion.BuildVersion=v%s",
		},
		completeSums: true,
	},
	"etcd": {
		packages: []string{"."},
		rename:   map[string]string{".": "etcd"},
	},
	"helm": {
		packages:     []string{"./cmd/helm"},
		vars:         []string{"{module}/internal/version.version=v%s"},
		completeSums: true,
	},
	"kubernetes": {
		packages: []string{
			"./cmd/kube-apiserver", "./cmd/kube-controller-manager", "./cmd/kube-scheduler",
			"./cmd/kubelet", "./cmd/kubectl",
		},
		vars: []string{
			"k8s.io/component-base/version.gitVersion=v%s",
			"k8s.io/component-base/version.gitMajor={major}",
			"k8s.io/component-base/version.gitMinor={minor}",
			"k8s.io/component-base/version.gitTreeState=clean",
			"k8s.io/client-go/pkg/version.gitVersion=v%s",
		},
	},
}

// recipeOf returns the recipe of a component.
func recipeOf(c Component) (recipe, error) {
	r, ok := recipes[c.recipe()]
	if !ok {
		return recipe{}, fmt.Errorf("no recipe for component %q", c.Name)
	}
	return r, nil
}

// ldflags are the linker's flags: stripped, and the true version written in.
func (r recipe) ldflags(c Component) string {
	number := strings.TrimPrefix(c.Version, "v")
	major, rest, _ := strings.Cut(number, ".")
	minor, _, _ := strings.Cut(rest, ".")
	fill := strings.NewReplacer("{module}", c.Module, "{major}", major, "{minor}", minor, "%s", number)
	flags := []string{"-s", "-w"}
	for _, v := range r.vars {
		flags = append(flags, "-X", fill.Replace(v))
	}
	return strings.Join(flags, " ")
}

// ingredients are what of the recipe decides about the programs.
func (r recipe) ingredients(c Component) []string {
	all := append([]string{fmt.Sprint("cgo ", r.cgo), r.ldflags(c)}, r.packages...)
	all = append(all, r.programs()...)
	for _, e := range r.edits {
		all = append(all, e.file, e.old, e.new)
	}
	return all
}

// programs are the file names the recipe leaves in the component's folder.
func (r recipe) programs() []string {
	var names []string
	for _, p := range r.packages {
		names = append(names, r.programName(p))
	}
	return names
}

func (r recipe) programName(pkg string) string {
	if name, ok := r.rename[pkg]; ok {
		return name
	}
	return pkg[strings.LastIndexByte(pkg, '/')+1:]
}
