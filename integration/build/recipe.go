package build

import (
	"fmt"
	"strings"
)

// recipe says how to build a component's programs.
type recipe struct {
	// packages are the programs' packages, relative to the module's root.
	packages []string
	// tests are packages that `go test -c` makes a program of, named like the package with .test.
	tests []string
	// rename maps the last element of a package's path to another file name for its program.
	rename map[string]string
	// cgo is true if the program needs a C compiler.
	cgo bool
	// vars are the string variables that the linker sets; %s is the version without v.
	vars []string
	// completeSums is false if the module's own go.sum leaves out modules of the same repository.
	// Go's checksum database verifies those.
	completeSums bool
	// edits change the code before the build.
	edits []edit
}

// edit replaces a piece of a file that must occur exactly once.
type edit struct{ file, old, new string }

var recipes = map[string]recipe{
	"containerd": {
		packages:     []string{"./cmd/containerd", "./cmd/containerd-shim-runc-v2", "./cmd/ctr"},
		vars:         []string{"{module}/version.Version=%s"},
		completeSums: true,
	},
	// The nsenter part of runc is C. Without the seccomp tag it needs no library, but then it
	// refuses every container with a seccomp profile, and the kubelet gives one to every sandbox.
	// The edit makes it start these containers without their profile.
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
		vars: kubernetesVersion,
	},
	// Kubernetes' own tests of a cluster, and the program that their pods run.
	"kubernetes-tests": {
		packages: []string{"./test/images/agnhost"},
		tests:    []string{"./test/e2e"},
		vars:     kubernetesVersion,
	},
}

var kubernetesVersion = []string{
	"k8s.io/component-base/version.gitVersion=v%s",
	"k8s.io/component-base/version.gitMajor={major}",
	"k8s.io/component-base/version.gitMinor={minor}",
	"k8s.io/component-base/version.gitTreeState=clean",
	"k8s.io/client-go/pkg/version.gitVersion=v%s",
}

// recipeOf returns the recipe of a component.
func recipeOf(c Component) (recipe, error) {
	r, ok := recipes[c.recipe()]
	if !ok {
		return recipe{}, fmt.Errorf("no recipe for component %q", c.Name)
	}
	return r, nil
}

// ldflags returns the linker's flags: they strip the program and set its version.
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

// ingredients returns the parts of the recipe that change the programs.
func (r recipe) ingredients(c Component) []string {
	all := append([]string{fmt.Sprint("cgo ", r.cgo), r.ldflags(c)}, r.packages...)
	all = append(all, r.tests...)
	all = append(all, r.programs()...)
	for _, e := range r.edits {
		all = append(all, e.file, e.old, e.new)
	}
	return all
}

// programs returns the file names that the recipe creates in the component's folder.
func (r recipe) programs() []string {
	var names []string
	for _, p := range r.packages {
		names = append(names, r.programName(p))
	}
	for _, p := range r.tests {
		names = append(names, r.programName(p)+".test")
	}
	return names
}

func (r recipe) programName(pkg string) string {
	if name, ok := r.rename[pkg]; ok {
		return name
	}
	return pkg[strings.LastIndexByte(pkg, '/')+1:]
}
