package demo

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (n *criNode) clear(ctx context.Context) error { return n.removeAll(ctx, nil) }

// removeAll removes the sandboxes that the filter selects, and repeats this until there are none: a
// sandbox whose request was cancelled during its creation appears late.
func (n *criNode) removeAll(ctx context.Context, filter *runtimeapi.PodSandboxFilter) error {
	for {
		all, err := n.runtime.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: filter})
		if err != nil {
			return fmt.Errorf("listing the pods: %w", err)
		}
		if len(all.GetItems()) == 0 {
			return nil
		}
		var group errgroup.Group
		for _, s := range all.GetItems() {
			group.Go(func() error { return n.remove(ctx, s.GetId()) })
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("removing the pods: %w", err)
		}
	}
}

func (n *criNode) remove(ctx context.Context, sandbox string) error {
	if _, err := n.runtime.CRI().StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
		return err
	}
	_, err := n.runtime.CRI().RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox})
	return err
}
