package uninstall

import (
	"context"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// seeBackoff spaces out the requests until the API server answers, which may be away for long after a reboot.
var seeBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 9, Cap: 5 * time.Minute}

// See asks for the DaemonSet, as NAMESPACE/NAME, until the API server answers about it, and reports whether it is there.
// It returns false once ctx ends. Call it when the daemon begins: at the daemon's end, a DaemonSet that is not there is
// gone only if it was there before. Under a wrong name there never is one.
func See(ctx context.Context, client kube.Interface, daemonSet string, log logrus.FieldLogger) (there bool) {
	namespace, name, _ := strings.Cut(daemonSet, "/")
	_ = seeBackoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (done bool, _ error) {
		ask, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		_, err := client.DaemonSets(namespace).Get(ask, name, metav1.GetOptions{})
		there = err == nil
		if notFound(err) {
			log.WithField("daemonset", daemonSet).Error("there is no DaemonSet of the name in --daemonset: this daemon leaves its files on the host when it ends")
		}
		return there || notFound(err), nil // an error would end the attempts
	})
	return there
}

// notFound reports whether the API server has said that there is no such object. A page of a proxy says nothing about it.
func notFound(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}
