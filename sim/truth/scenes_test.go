package truth

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// detector is an app whose first stage sends FanOut items along one edge and one along another.
func detector(fan float64) *serving.Spec {
	return &serving.Spec{
		Stages: []serving.Stage{{Next: []serving.Edge{{To: 1, FanOut: fan}, {To: 2, FanOut: 1}}}, {}, {}},
	}
}

// videos are like those of Scrooge's Figure 3a: one with many items, one with few, and one between 0 and 8 within 200
// frames.
var videos = []Video{
	{Level: 8.94, Deviation: 0.25, TimeConstant: 10 * time.Second},
	{Level: 0.37, Deviation: 1, TimeConstant: 5 * time.Second},
	{Level: 2.5, Deviation: 1.3, TimeConstant: 3 * time.Second, MaxItems: 12},
}

func scenes(t *testing.T, fan float64, seed uint64, v ...Video) *Scenes {
	s, err := NewScenes(detector(fan), seed, v...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Frames that are far apart are independent. Their mean is the video's, their deviation that of the level and of
// rounding to whole items.
func TestScenesHaveTheirMean(t *testing.T) {
	for _, v := range videos[:2] {
		for _, fan := range []float64{1.5, 4} {
			c := scenes(t, fan, 1, v)
			const n = 40_000
			sum := 0.0
			for k := range n {
				f := c.Frame(&serving.Query{Arrived: serving.Time(k) * serving.Time(100*time.Second)})
				items := f.Fan(0, 0)
				if items != math.Trunc(items) || f.Fan(0, 0) != items {
					t.Fatalf("%v items, then %v", items, f.Fan(0, 0))
				}
				if other := f.Fan(0, 1); other != 1 {
					t.Fatalf("an edge that hands every item on sends %v", other)
				}
				sum += items
			}
			want := v.Level * fan
			if got := sum / n; math.Abs(got-want) > 4*math.Sqrt((want*want*v.Deviation*v.Deviation+0.25)/n) {
				t.Errorf("%+v with fan-out %v: %v items in the mean, want %v (seed 1)", v, fan, got, want)
			}
		}
	}
}

// After the time constant a deviation has fallen to 1/e, sampled in one step or in many.
func TestScenesReturnToTheirMean(t *testing.T) {
	for _, steps := range []int{1, 10} {
		v := Video{Level: 1, Deviation: 1, BalloonDeviation: 1, TimeConstant: time.Second}
		s := &streamState{video: &v, rng: rand.New(rand.NewPCG(3, uint64(steps)))}
		s.level, s.swell = s.rng.NormFloat64(), s.rng.NormFloat64()
		const n = 40_000
		var level, swell, both, square float64
		for range n {
			a, b := s.level, s.swell
			for range steps {
				s.move(s.at + serving.Time(time.Second)/serving.Time(steps))
			}
			level, swell, both, square = level+a*s.level, swell+b*s.swell, both+s.level*s.swell, square+s.level*s.level
		}
		for what, x := range map[string][2]float64{
			"level": {level / n, 1 / math.E}, "ballooning": {swell / n, 1 / math.E}, "both": {both / n, 0},
			"variance": {square / n, 1},
		} {
			// four deviations of the mean of products, which are correlated over some steps
			if math.Abs(x[0]-x[1]) > 0.05 {
				t.Errorf("%d steps, %s: %v, want %v (seed 3)", steps, what, x[0], x[1])
			}
		}
	}
}

// The third video shows nothing and shows 8 items or more within 200 frames at 25 a second, most of the time; the first
// does not.
func TestAVideoRangesFromNothingToEight(t *testing.T) {
	share := func(v Video) float64 {
		c := scenes(t, 1, 5, v)
		c.Follows = func(_ serving.StageID, k int) bool { return k == 0 }
		const windows = 400
		n := 0
		for w := range windows {
			least, most := math.Inf(1), 0.0
			for k := range 200 {
				items := c.Frame(&serving.Query{
					Arrived: serving.Time(w*200+k) * serving.Time(40*time.Millisecond),
				}).Fan(0, 0)
				least, most = min(least, items), max(most, items)
			}
			if least == 0 && most >= 8 {
				n++
			}
		}
		return float64(n) / windows
	}
	if got := share(videos[2]); got < 0.1 {
		t.Errorf("%v of the windows range from 0 to 8 (seed 5)", got)
	}
	if got := share(videos[0]); got != 0 {
		t.Errorf("%v of the windows of the busy video range from 0 to 8 (seed 5)", got)
	}
}

// The content of a stream does not depend on other streams. Another seed gives other content. A stream's first frame
// draws its video.
func TestStreamsOfScenesAreIndependent(t *testing.T) {
	alone, among := scenes(t, 4, 7, videos...), scenes(t, 4, 7, videos...)
	other := scenes(t, 4, 8, videos...)
	same, shown := 0, make(map[*Video]bool)
	for k := range 500 {
		q := serving.Query{Stream: 3, Arrived: serving.Time(k) * 1e8}
		for s := range uint64(20) {
			if s != 3 {
				among.Frame(&serving.Query{Stream: s, Arrived: q.Arrived})
			}
		}
		among.Frame(&serving.Query{App: 1, Stream: 3, Arrived: q.Arrived})
		a, b := alone.Frame(&q), among.Frame(&q)
		if a.Fan(0, 0) != b.Fan(0, 0) {
			t.Fatalf("frame %d shows %v items alone and %v among others", k, a.Fan(0, 0), b.Fan(0, 0))
		}
		if a.Fan(0, 0) == other.Frame(&q).Fan(0, 0) {
			same++
		}
	}
	if same > 450 {
		t.Errorf("%d of 500 frames are the same with another seed", same)
	}
	for _, s := range among.streams {
		shown[s.video] = true
	}
	if len(shown) != len(videos) {
		t.Errorf("21 streams show %d videos of %d", len(shown), len(videos))
	}
}

// Execution times resemble those of Figure 3b, 0.686 to 1.102 s: they scatter around their mean at stages that balloon.
func TestScenesBalloon(t *testing.T) {
	c := scenes(t, 1, 2, Video{Level: 1, Balloon: 1.1, BalloonDeviation: 0.1, TimeConstant: time.Second})
	c.Balloons = func(s serving.StageID) bool { return s == 2 }
	const n = 20_000
	sum, square := 0.0, 0.0
	for k := range n {
		f := c.Frame(&serving.Query{Arrived: serving.Time(k) * serving.Time(20*time.Second)})
		if f.Balloon(1) != 1 {
			t.Fatal("a stage balloons that does not")
		}
		b := f.Balloon(2)
		sum, square = sum+b, square+b*b
	}
	mean := sum / n
	if dev := math.Sqrt(square/n - mean*mean); math.Abs(mean-1.1) > 4*0.11/math.Sqrt(n) || math.Abs(dev-0.11) > 0.005 {
		t.Errorf("mean %v and deviation %v, want 1.1 and 0.11 (seed 2)", mean, dev)
	}
}

// However a query's items are split, the parts together send as much as the whole.
func TestSentInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		f := fixedFrame(3 * rng.Float64())
		total := rng.Int32N(50)
		sum, offset := int32(0), int32(0)
		for offset < total {
			n := 1 + rng.Int32N(total-offset)
			part := ItemsSent(f, 0, 0, offset, n)
			if part < 0 {
				t.Fatalf("%d items sent", part)
			}
			sum, offset = sum+part, offset+n
		}
		if want := ItemsSent(f, 0, 0, 0, total); sum != want || want != int32(math.Round(float64(total)*float64(f))) {
			t.Fatalf("%d items with fan %v: the parts send %d, the whole %d (seed 4)", total, float64(f), sum, want)
		}
	}
}

type fixedFrame float64

func (f fixedFrame) Fan(serving.StageID, int) float64 { return float64(f) }
func (f fixedFrame) Balloon(serving.StageID) float64  { return 1 }

func TestBadVideos(t *testing.T) {
	for _, v := range [][]Video{
		nil, {{Level: -1}}, {{Level: math.NaN()}}, {{Level: 1, Deviation: 1}}, {{Level: math.Inf(1)}}, {{MaxItems: -1}},
	} {
		if _, err := NewScenes(detector(1), 1, v...); err == nil {
			t.Errorf("%+v passes", v)
		}
	}
}
