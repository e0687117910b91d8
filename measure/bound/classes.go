package bound

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// class is queries that are alike to the program.
type class struct {
	key
	count  float64
	within time.Duration // the longest time to a deadline
	size   int           // the least items at the first stage
	items  []float64     // by stage of the app: the least of any
}

// key is what queries of a class have in common.
type key struct {
	app         serving.AppID
	variant     serving.VariantID
	minAccuracy float64
	span        int // of time to the deadline: its binary logarithm in ns, in quarters
	from, to    int // windows of arrival and deadline
}

// spanOf cuts times to a deadline into spans of a factor of 2^(1/4): clients have deadlines of their own.
func spanOf(d time.Duration) int { return int(math.Ceil(4 * math.Log2(float64(d)))) }

// classify puts queries into at most most classes of each key. Within a class the least work stands for all, so that
// the program is a bound however they are cut.
func (p *program) classify(queries []Query, most int) {
	byKey := make(map[key][]int)
	var keys []key
	for i := range queries {
		q := &queries[i]
		d := q.Deadline.Sub(q.Arrived)
		if d <= 0 {
			continue
		}
		k := key{q.App, q.Variant, q.MinAccuracy, spanOf(d), p.window(q.Arrived), p.window(q.Deadline)}
		if byKey[k] == nil {
			keys = append(keys, k)
		}
		byKey[k] = append(byKey[k], i)
	}
	for _, k := range keys {
		list := byKey[k]
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(queries[a].work(), queries[b].work()) })
		for len(list) > 0 {
			n := cut(queries, list, len(byKey[k]), most)
			p.classes = append(p.classes, classOf(k, queries, list[:n]))
			list = list[n:]
		}
	}
}

// cut returns how many of the queries at the head of list make a class: an equal part of all, and all that are as
// large as the last of them.
func cut(queries []Query, list []int, all, most int) int {
	n := min((all+most-1)/most, len(list))
	last := queries[list[n-1]].work()
	for n < len(list) && queries[list[n]].work() == last {
		n++
	}
	return n
}

func classOf(k key, queries []Query, list []int) class {
	c := class{key: k, items: slices.Clone(queries[list[0]].Items), size: math.MaxInt}
	for _, i := range list {
		q := &queries[i]
		c.count += q.count()
		c.within = max(c.within, q.Deadline.Sub(q.Arrived))
		c.size = min(c.size, max(int(q.Items[0]), 1))
		for s, n := range q.Items {
			c.items[s] = min(c.items[s], n)
		}
	}
	return c
}

// work is what queries of a key are sorted by.
func (q *Query) work() (sum float64) {
	for _, n := range q.Items {
		sum += n
	}
	return sum
}
