package supply

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// RoleMeasure is the value of v1alpha1.LabelRole on pods that measure models.
const RoleMeasure = "measure"

// MeasuringPod returns a pod that measures one model on a machine type: as a worker's, with the model fetched first.
// What it has measured is its termination message, as `sluice-operator measure` writes it.
func MeasuringPod(m *cell.Machines, machineType, model string, maxBatch int32) (*corev1.PodTemplateSpec, error) {
	t, err := typed(m, machineType)
	if err != nil {
		return nil, err
	}
	if t.Backend != v1alpha1.BackendSluice && t.Backend != "" {
		return nil, fmt.Errorf("machine type %q runs %s, which is not measured: models are measured as sluice runs "+
			"them", machineType, t.Backend)
	}
	p, err := template(m, machineType, &t)
	if err != nil {
		return nil, err
	}
	p.Labels[v1alpha1.LabelRole] = RoleMeasure
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](releaseGrace)
	for k := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[k]; c.Name == fetcherName {
			c.Command = append(fetchCommand(), "--to", modelsFolder, model)
		}
	}
	c := &p.Spec.Containers[0]
	c.Name, c.Command = "measure", []string{operatorProgram}
	c.Args = []string{
		"measure", "--models", modelsFolder, "--model", model, "--cores", fmt.Sprint(max(t.Cores, 1)), "--max-batch",
		fmt.Sprint(maxBatch), "--termination-log", corev1.TerminationMessagePathDefault,
	}
	if len(t.Accelerators) > 0 {
		c.Args = append(c.Args, "--accelerators", "1")
	}
	c.Ports, c.ReadinessProbe, c.LivenessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil, nil
	return &corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, nil
}
