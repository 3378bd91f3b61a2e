package runtimetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// adjust applies what the plugins asked for. What this runtime cannot do is an error.
func (p *processSpec) adjust(a *api.ContainerAdjustment) error {
	unsupported := map[string]bool{
		"mounts":                len(a.GetMounts()) > 0,
		"rlimits":               len(a.GetRlimits()) > 0,
		"CDI devices":           len(a.GetCDIDevices()) > 0,
		"linux properties":      a.GetLinux() != nil && hasContent(a.GetLinux().ProtoReflect()),
		"prestart hooks":        len(a.GetHooks().GetPrestart()) > 0,
		"createContainer hooks": len(a.GetHooks().GetCreateContainer()) > 0,
		"startContainer hooks":  len(a.GetHooks().GetStartContainer()) > 0,
		"poststart hooks":       len(a.GetHooks().GetPoststart()) > 0,
		"poststop hooks":        len(a.GetHooks().GetPoststop()) > 0,
	}
	for what, asked := range unsupported {
		if asked {
			return fmt.Errorf("a plugin adjusts %s, which this runtime cannot do", what)
		}
	}
	for key, value := range a.GetAnnotations() {
		if removed, marked := api.IsMarkedForRemoval(key); marked {
			delete(p.annotations, removed)
		} else {
			p.annotations[key] = value
		}
	}
	p.adjustEnv(a.GetEnv())
	if args := a.GetArgs(); len(args) > 0 {
		p.args = slices.Clone(args)
	}
	p.hooks = append(p.hooks, a.GetHooks().GetCreateRuntime()...)
	return nil
}

// adjustEnv sets variables. The adaptation passes no removals on.
func (p *processSpec) adjustEnv(env []*api.KeyValue) {
	for _, kv := range env {
		p.env = slices.DeleteFunc(p.env, func(old string) bool { return strings.HasPrefix(old, kv.Key+"=") })
		p.env = append(p.env, kv.ToOCI())
	}
}

// hasContent tells whether a message says anything: NRI hands out trees of empty ones.
func hasContent(m protoreflect.Message) bool {
	found := false
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		single := field.Message() != nil && !field.IsList() && !field.IsMap()
		found = !single || hasContent(value.Message())
		return !found
	})
	return found
}
