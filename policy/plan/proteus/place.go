package proteus

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// place gives counts to workers with the fewest loads, and returns for each worker its pair, or -1. Per group this is a
// transportation problem in which a worker that already runs the variant costs nothing and every other the same, a little
// less when it stays with its stage (a variant is swapped, the instance lives on); so keeping all that can be kept, then
// filling from the same stage, then from the rest, is optimal. Ties go to the smaller worker and variant.
func (m *problem) place(counts []int) (hosts []int, loads int) {
	hosts = make([]int, len(m.spec.Workers))
	for w := range hosts {
		hosts[w] = -1
	}
	want := append([]int(nil), counts...)
	fill := func(suits func(w serving.WorkerID, k int) bool) (n int) {
		for g := range m.groups {
			for _, w := range m.groups[g].workers {
				if hosts[w] >= 0 {
					continue
				}
				for k := range m.pairs {
					if want[k] > 0 && m.pairs[k].group == g && suits(w, k) {
						hosts[w] = k
						want[k]--
						n++
						break
					}
				}
			}
		}
		return n
	}
	fill(func(w serving.WorkerID, k int) bool {
		v, ok := m.hosted(w)
		return ok && v == m.pairs[k].variant
	})
	loads = fill(func(w serving.WorkerID, k int) bool {
		i, ok := m.running[w]
		return ok && i.Stage == m.pairs[k].stage
	})
	loads += fill(func(serving.WorkerID, int) bool { return true })
	return hosts, loads
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
