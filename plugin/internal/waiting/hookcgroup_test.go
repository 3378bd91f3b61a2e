package waiting

import (
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
)

func TestTheHookLearnsTheCgroupOfItsContainer(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/kubepods/burstable/pod7/c0ffee":                     "/kubepods/burstable/pod7/c0ffee",
		"kubepods-burstable-pod7.slice:cri-containerd:c0ffee": "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7.slice/cri-containerd-c0ffee.scope",
		"/kubepods/burstable/pod7":                            "", // not of this container alone
		"/c0ffee/..":                                          "",
		"c0ffee":                                              "",
		"":                                                    "",
	} {
		assert.Equal(t, want, cgroupOf(&api.Container{Id: "c0ffee", Linux: &api.LinuxContainer{CgroupsPath: path}}), path)
	}
	assert.Empty(t, cgroupOf(&api.Container{Id: "c0ffee"}))
}
