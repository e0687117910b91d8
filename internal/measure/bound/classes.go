package bound

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// class is queries that the program does not distinguish.
type class struct {
	key
	count  float64
	within time.Duration // the longest time to a deadline
	size   int           // the least items at the first stage
	items  []float64     // by stage of the app: the least of any
	length int32         // the least of any
	place  int           // among the app's classes
}

// key is the properties that all queries of a class share.
type key struct {
	app         serving.AppID
	variant     serving.VariantID
	minAccuracy float64
	span        int // of the time to the deadline, as spanOf returns it
	from, to    int // windows of arrival and deadline
	crowd       int // of the queries that come at about the same time, as crowding returns it
	lengths     int // of the length, as lengthsOf returns it
}

// lengthApps is for how many apps a length is divided most finely. The time to solve grows with the classes: a world of
// 12 apps took 73 s with halves of a binary logarithm and takes 15 with whole ones.
const lengthApps = 6

// lengthsOf returns the span of a length: its binary logarithm in halves, or in larger steps where many apps have
// lengths. It is 0 where lengths do not count.
func (p *program) lengthsOf(length int32) int {
	if p.w.LongTime == nil || length <= 0 {
		return 0
	}
	steps := 2 * min(1, lengthApps/float64(len(p.w.Spec.Apps)))
	return 1 + int(steps*math.Log2(float64(length)))
}

// spanOf returns the span of a time to a deadline: its binary logarithm in ns, in quarters, rounded up. Clients may
// have deadlines of their own, so times are rounded.
func spanOf(d time.Duration) int { return int(math.Ceil(4 * math.Log2(float64(d)))) }

// classify divides the queries of each key into at most most classes. All queries of a class count with the least work
// of any, so the program is a bound for every division.
func (p *program) classify(queries []Query, most int) {
	p.classOf = make([]int, len(queries))
	byKey := make(map[key][]int)
	var keys []key
	for i := range queries {
		q := &queries[i]
		d := q.Deadline.Sub(q.Arrived)
		if p.classOf[i] = -1; d <= 0 {
			continue
		}
		k := key{q.App, q.Variant, q.MinAccuracy, spanOf(d), p.window(q.Arrived), p.window(q.Deadline), p.crowding(i),
			p.lengthsOf(q.Length)}
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
			for _, i := range list[:n] {
				p.classOf[i] = len(p.classes)
			}
			p.classes = append(p.classes, classOf(k, queries, list[:n]))
			list = list[n:]
		}
	}
}

// cut returns how many of the first queries of list form a class: an equal part of all, and all further ones of the
// same size.
func cut(queries []Query, list []int, all, most int) int {
	n := min((all+most-1)/most, len(list))
	last := queries[list[n-1]].work()
	for n < len(list) && queries[list[n]].work() == last {
		n++
	}
	return n
}

func classOf(k key, queries []Query, list []int) class {
	c := class{key: k, items: slices.Clone(queries[list[0]].Items), size: math.MaxInt,
		length: queries[list[0]].Length}
	for _, i := range list {
		q := &queries[i]
		c.count += q.count()
		c.within = max(c.within, q.Deadline.Sub(q.Arrived))
		c.length = min(c.length, q.Length)
		c.size = min(c.size, max(int(q.Items[0]), 1))
		for s, n := range q.Items {
			c.items[s] = min(c.items[s], n)
		}
	}
	return c
}

// work returns the total items of a query. Queries of a key are sorted by it.
func (q *Query) work() (sum float64) {
	for _, n := range q.Items {
		sum += n
	}
	return sum
}
