package chart

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// Release has the name and the namespace of `helm install NAME --namespace NAMESPACE`.
type Release struct {
	Name, Namespace string
	// KubeVersion is the version of the cluster. Empty: v1.37.0.
	KubeVersion string
}

// Repository returns a path inside the repository, from its root.
func Repository(parts ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file), "..", ".."}, parts...)...)
}

// Dir is the chart's folder.
func Dir() string { return Repository("deploy", "chart", "pod-pacemaker") }

// Load reads the chart.
func Load() (*chartv2.Chart, error) {
	c, err := loader.Load(Dir())
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	return c, nil
}

// LocalImage is the image that Render uses if the values name none: the chart itself refuses to render then.
const LocalImage = "pod-pacemaker"

// Render returns what the chart renders with these values on top of its own, by the name of the
// template. If they name no image, it is LocalImage. Values that the chart's schema or a template
// refuses are an error. Empty results, the notes, and objects that only `helm test` and `helm
// uninstall` apply are left out.
func Render(r Release, values map[string]any) (map[string]string, error) {
	rendered, err := renderAll(r, values)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range rendered {
		folder := path.Base(path.Dir(name))
		if strings.TrimSpace(text) != "" && path.Base(name) != notes && folder != tests && folder != hooks {
			files[path.Base(name)] = text
		}
	}
	return files, nil
}

// The templates that `helm install` does not apply.
const (
	notes = "NOTES.txt"
	tests = "tests"
	hooks = "hooks"
)

// load reads the chart, with LocalImage as the default of its image.
func load() (*chartv2.Chart, error) {
	c, err := Load()
	if err != nil {
		return nil, err
	}
	image, ok := c.Values["image"].(map[string]any)
	if !ok {
		return nil, errors.New("the chart's values have no image")
	}
	image["repository"] = LocalImage
	return c, nil
}

// renderAll returns the result of each template, by its path in the chart.
func renderAll(r Release, values map[string]any) (map[string]string, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	capabilities := common.DefaultCapabilities.Copy()
	version, err := common.ParseKubeVersion(cmp.Or(r.KubeVersion, "v1.37.0"))
	if err != nil {
		return nil, fmt.Errorf("the version of Kubernetes: %w", err)
	}
	capabilities.KubeVersion = *version
	all, err := util.ToRenderValues(c, values, options, capabilities)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	files := map[string]string{}
	for name, text := range rendered {
		files[strings.TrimPrefix(name, c.Name()+"/")] = text
	}
	return files, nil
}
