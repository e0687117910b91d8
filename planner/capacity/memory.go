package capacity

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Shrink leaves variants out until a worker's memory holds the rest. They come fastest first, the accuracy rising. The
// fastest stays: it answers when nothing else does. Of the others, the one goes whose place the next faster takes best.
func FitMemory[M any](spec *serving.Spec, d serving.DeviceTypeID, list []M, of func(*M) serving.VariantID) []M {
	memory := spec.DeviceTypes[d].MemoryBytes
	accuracy := func(i int) float64 { return spec.Variants[of(&list[i])].Accuracy }
	for memory > 0 && len(list) > 1 {
		need := int64(0)
		for i := range list {
			need += spec.Variants[of(&list[i])].MemoryBytes
		}
		if need <= memory {
			break
		}
		least := len(list) - 1
		for i := 1; i < len(list); i++ {
			if accuracy(i)-accuracy(i-1) < accuracy(least)-accuracy(least-1) {
				least = i
			}
		}
		list = slices.Delete(list, least, least+1)
	}
	return list
}
