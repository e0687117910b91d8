package capacity

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// FitMemory removes elements of list until so many bytes of memory hold all remaining variants together. The list
// must be ordered fastest first, with rising accuracy; of returns the variant of an element. The fastest variant always
// stays, because it answers when no other can. Of the others, FitMemory removes the one that adds least accuracy to the
// next faster one. A memory of 0 is not known and holds all of them. It changes list and returns it.
func FitMemory[M any](spec *serving.Spec, memory int64, list []M, of func(*M) serving.VariantID) []M {
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
