package supply

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// What an init step says it could not fetch is kept, of models that there are, whatever else a pod says.
func TestUnfetched(t *testing.T) {
	s := &Supply{unhad: map[string]string{}, machines: &cell.Machines{
		Models: map[string]v1alpha1.Model{"app.small": {}, "app.large": {}},
	}}
	said := func(container, message string) {
		s.noteFetched(&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
			Name: container, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Message: message},
			},
		}}}})
	}
	said(fetcherName, `{"failed":{"app.small":"its digest is another","other":"it is not there"}}`)
	said(fetcherName, `no JSON`)
	said("mine", `{"failed":{"app.large":"said by somebody else"}}`)
	if got, want := s.Unfetched(), map[string]string{"app.small": "its digest is another"}; !maps.Equal(got, want) {
		t.Errorf("unfetched are %v, want %v", got, want)
	}
}
