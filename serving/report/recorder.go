package report

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Options configure a Recorder. The zero value means the defaults.
type Options struct {
	Bucket time.Duration // width of the time series' buckets; default 1 s
	Window time.Duration // of the accuracy drop; default 10 s, rounded to whole buckets
	// Exact is the number of latencies that are kept for each app. Percentiles of more latencies come from a histogram
	// and have an error of less than 0.1 %. Default 1<<20, which takes 16 MB for each app, with queue times.
	Exact int
	// Warmup is the time before which queries that arrive are left out.
	Warmup serving.Time
	// Parts has the report say of which parts latency is made up (Summary.Run and Summary.Outside).
	Parts bool
}

// maxVariants bounds the ids of variants that are counted apart.
const maxVariants = 1 << 12

// maxBuckets bounds the time series: 36 hours in buckets of a second. Later events count in the last bucket.
const maxBuckets = 1 << 17

// bucketExact is the number of latencies that a bucket keeps before it counts them in cells.
const bucketExact = 2048

// Recorder collects outcomes. It is not safe for concurrent use.
type Recorder struct {
	opt  Options
	apps []appRecord
	info []AppInfo
	last serving.Time // time of the last outcome

	tenants []tenantCounts // by the number of serving.Query; as many as were seen
}

type appRecord struct {
	totals
	latency dist // of served queries
	queue   dist
	run     dist // of those whose Inside is known, as is outside
	outside dist
	buckets []bucket
	use     []use // by VariantID
}

// newAppRecord keeps so many exact values of each distribution.
func newAppRecord(exact int) appRecord {
	d := dist{limit: exact}
	return appRecord{latency: d, queue: d, run: d, outside: d}
}

// use is the queries that one variant served.
type use struct {
	served   int64
	accuracy float64 // sum over queries
}

// totals are counts and sums over a run or a bucket.
type totals struct {
	outcomes [serving.Outcomes]int64
	late     int64
	items    int64 // of served queries

	accuracy   float64 // sum over served queries
	satisfied  float64 // sum over queries served in time
	best       float64 // sum over served queries of the best accuracy of their app
	normalised float64 // sum over served queries of accuracy / best accuracy of their app
	weighed    float64 // sum over all queries of the weight of their app
	gained     float64 // sum over queries served in time of weight * accuracy / best accuracy of their app
	right      int64   // queries
	wrong      int64

	rightItems, judgedItems int64

	runItems int64   // items of served queries whose batch is known
	runs     float64 // batches: each query counts for its share of its batch
}

type bucket struct {
	// by the time of arrival
	offered    int64
	served     int64 // those that were answered, at any time
	accuracy   float64
	best       float64
	normalised float64
	weighed    float64
	gained     float64
	// by the time of the outcome
	done     totals
	latency  dist
	variants []int64 // by VariantID
}

// NewRecorder returns a Recorder for apps, by AppID. It does not keep the slice.
func NewRecorder(apps []AppInfo, opt Options) *Recorder {
	if opt.Bucket <= 0 {
		opt.Bucket = time.Second
	}
	if opt.Window <= 0 {
		opt.Window = 10 * time.Second
	}
	if opt.Window < opt.Bucket {
		opt.Window = opt.Bucket
	}
	if opt.Exact <= 0 {
		opt.Exact = 1 << 20
	}
	r := &Recorder{opt: opt}
	for _, a := range apps {
		r.addApp(a)
	}
	return r
}

func (r *Recorder) addApp(a AppInfo) {
	r.info = append(r.info, a)
	r.apps = append(r.apps, newAppRecord(r.opt.Exact))
}

// Add records one outcome, in constant time. o is not kept. An app without AppInfo is reported as "app N". Ids below 0
// are ignored.
func (r *Recorder) Add(o *Outcome) {
	if o.Arrived < r.opt.Warmup || o.App < 0 || o.App >= 1<<16 || int(o.Outcome) >= serving.Outcomes {
		return
	}
	for int(o.App) >= len(r.apps) {
		r.addApp(AppInfo{Name: fmt.Sprintf("app %d", len(r.apps))})
	}
	a := &r.apps[o.App]
	r.last = max(r.last, o.Done, o.Arrived)
	info, late := &r.info[o.App], o.Late()
	a.add(o, info, late)
	r.ofTenant(o, late)
	a.bucket(r.index(o.Arrived)).arrive(o, info, late)
	b := a.bucket(r.index(o.Done))
	b.done.add(o, info, late)
	if o.Outcome == serving.Served {
		latency := int64(o.Done - o.Arrived)
		a.latency.add(latency)
		a.queue.add(int64(o.Queue))
		if r.opt.Parts && o.Inside > 0 {
			a.run.add(int64(o.Inside - o.Queue))
			a.outside.add(latency - int64(o.Inside))
		}
		if b.latency.limit == 0 {
			b.latency.limit = bucketExact
		}
		b.latency.add(latency)
		if v := int(o.Variant); v >= 0 && v < maxVariants {
			if v >= len(a.use) {
				a.use = append(a.use, make([]use, v+1-len(a.use))...)
			}
			a.use[v].served++
			a.use[v].accuracy += o.Accuracy
			if v >= len(b.variants) {
				b.variants = append(b.variants, make([]int64, v+1-len(b.variants))...)
			}
			b.variants[v]++
		}
	}
}

func (r *Recorder) index(t serving.Time) int {
	return int(min(max(int64(t-r.opt.Warmup)/int64(r.opt.Bucket), 0), maxBuckets-1))
}

func (a *appRecord) bucket(i int) *bucket {
	for i >= len(a.buckets) {
		a.buckets = append(a.buckets, bucket{})
	}
	return &a.buckets[i]
}

func (b *bucket) arrive(o *Outcome, info *AppInfo, late bool) {
	b.offered++
	b.weighed += info.weight()
	if o.Outcome != serving.Served {
		return
	}
	b.served++
	b.accuracy += o.Accuracy
	if info.BestAccuracy > 0 {
		best := o.Best(info.BestAccuracy)
		if !late {
			b.gained += info.weight() * o.Accuracy / best
		}
		b.best += best
		b.normalised += o.Accuracy / best
	}
}

func (t *totals) add(o *Outcome, info *AppInfo, late bool) {
	t.outcomes[o.Outcome]++
	t.weighed += info.weight()
	if o.Outcome != serving.Served {
		return
	}
	if late {
		t.late++
	} else {
		t.satisfied += o.Accuracy
	}
	items := max(o.Items, 1)
	t.items += int64(items)
	t.accuracy += o.Accuracy
	if info.BestAccuracy > 0 {
		best := o.Best(info.BestAccuracy)
		t.best += best
		t.normalised += o.Accuracy / best
		if !late {
			t.gained += info.weight() * o.Accuracy / best
		}
	}
	right, judged := o.judged()
	t.rightItems += right
	t.judgedItems += judged
	switch o.Label {
	case LabelRight:
		t.right++
	case LabelWrong:
		t.wrong++
	}
	if o.Batch > 0 {
		t.runItems += int64(items)
		t.runs += float64(items) / float64(o.Batch)
	}
}

func (t *totals) merge(o *totals) {
	for i, n := range o.outcomes {
		t.outcomes[i] += n
	}
	t.late += o.late
	t.items += o.items
	t.accuracy += o.accuracy
	t.satisfied += o.satisfied
	t.best += o.best
	t.normalised += o.normalised
	t.weighed += o.weighed
	t.gained += o.gained
	t.right += o.right
	t.wrong += o.wrong
	t.rightItems += o.rightItems
	t.judgedItems += o.judgedItems
	t.runItems += o.runItems
	t.runs += o.runs
}

func (t *totals) offered() int64 {
	n := int64(0)
	for _, x := range t.outcomes {
		n += x
	}
	return n
}

// violations returns the queries that missed their objective: late, dropped, refused or failed.
func (t *totals) violations() int64 {
	return t.late + t.outcomes[serving.Dropped] + t.outcomes[serving.Refused] + t.outcomes[serving.Failed]
}
