package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Video is the kind of content that a stream shows. Its numbers can reproduce Scrooge §2 and Figure 3: means of 8.94
// and 0.37 items, a range of 0 to 8 items within 200 frames, execution times of 0.686 to 1.102 s.
//
// The level of a video says how many items its frames show. It is a log-normal process that returns to its mean: the
// exponential of an Ornstein-Uhlenbeck process, sampled exactly at the times of the frames. After TimeConstant a
// deviation has fallen to 1/e. A frame sends level x FanOut items for every item, rounded up or down at random so that
// the mean is kept. The ballooning factor is another such process.
type Video struct {
	Level            float64       // mean level: items relative to the edge's FanOut; at least 0
	Deviation        float64       // standard deviation of the level relative to its mean; at least 0
	TimeConstant     time.Duration // of both processes; more than 0 unless both deviations are 0
	MaxItems         int32         // most items that a frame sends for each item; 0 for no bound
	Balloon          float64       // mean ballooning factor; 0 means 1
	BalloonDeviation float64       // standard deviation of the ballooning factor relative to its mean; at least 0
}

// Scenes is content made of videos. Every stream shows one of them, drawn at its first query.
type Scenes struct {
	Videos []Video
	// Follows reports whether edge k of stage s follows the content of a stream. Other edges send FanOut items for
	// each. Nil means that edges follow whose FanOut is not 1.
	Follows func(s serving.StageID, k int) bool
	// Balloons reports whether content changes the run time of stage s. Nil means that it changes none.
	Balloons func(s serving.StageID) bool

	spec    *serving.Spec
	seed    uint64
	streams map[streamKey]*streamState
}

type streamKey struct {
	app    serving.AppID
	stream uint64
}

// streamState is the state of the video that a stream shows.
type streamState struct {
	video        *Video
	rng          *rand.Rand
	at           serving.Time
	level, swell float64 // of the Ornstein-Uhlenbeck processes: standard normal
}

// NewScenes returns content for the apps of spec. The content of a stream depends on the seed, its app, its number and
// the times of its queries, not on other streams. It returns an error when there is no video or one has numbers out of
// range.
func NewScenes(spec *serving.Spec, seed uint64, videos ...Video) (*Scenes, error) {
	if len(videos) == 0 {
		return nil, fmt.Errorf("scenes: there is no video, want at least one")
	}
	for i, v := range videos {
		if !(v.Level >= 0 && v.Deviation >= 0 && v.BalloonDeviation >= 0 && v.Balloon >= 0) ||
			math.IsInf(v.Level+v.Deviation+v.BalloonDeviation+v.Balloon, 0) || v.MaxItems < 0 ||
			v.TimeConstant <= 0 && v.Deviation+v.BalloonDeviation > 0 {
			return nil, fmt.Errorf("scenes: video %d is %+v: its numbers must be finite and at least 0, and its time "+
				"more than 0 where it moves", i, v)
		}
	}
	return &Scenes{Videos: videos, spec: spec, seed: seed, streams: make(map[streamKey]*streamState)}, nil
}

// Frame implements Content.
func (c *Scenes) Frame(q *serving.Query) Frame {
	key := streamKey{q.App, q.Stream}
	s := c.streams[key]
	if s == nil {
		// PCG takes two words. The multiplier keeps streams apart that have the same number in different apps.
		s = &streamState{rng: rand.New(rand.NewPCG(c.seed, (uint64(q.App)+1)*0x9e3779b97f4a7c15^q.Stream)),
			at: q.Arrived}
		s.video = &c.Videos[s.rng.IntN(len(c.Videos))]
		s.level, s.swell = s.rng.NormFloat64(), s.rng.NormFloat64()
		c.streams[key] = s
	}
	s.move(q.Arrived)
	v := s.video
	f := &frame{
		scenes: c, level: v.Level * lognormal(s.level, v.Deviation), balloon: lognormal(s.swell, v.BalloonDeviation),
		most:   v.MaxItems,
		chance: s.rng.Float64(),
	}
	if v.Balloon > 0 {
		f.balloon *= v.Balloon
	}
	return f
}

// move advances both processes to now.
func (s *streamState) move(now serving.Time) {
	passed := now.Sub(s.at)
	s.at = now
	if passed <= 0 || s.video.TimeConstant <= 0 {
		return
	}
	keep := math.Exp(-float64(passed) / float64(s.video.TimeConstant))
	fresh := math.Sqrt(1 - keep*keep)
	s.level = keep*s.level + fresh*s.rng.NormFloat64()
	s.swell = keep*s.swell + fresh*s.rng.NormFloat64()
}

// lognormal turns a standard normal number into a log-normal one with mean 1 and the given standard deviation.
func lognormal(z, deviation float64) float64 {
	s2 := math.Log1p(deviation * deviation)
	return math.Exp(math.Sqrt(s2)*z - s2/2)
}

type frame struct {
	scenes         *Scenes
	level, balloon float64
	chance         float64 // in [0, 1): a fraction above it counts for a whole item
	most           int32
}

// Fan implements Frame.
func (f *frame) Fan(s serving.StageID, k int) float64 {
	fan := f.scenes.spec.Stages[s].Next[k].FanOut
	if follows := f.scenes.Follows; follows == nil && fan == 1 || follows != nil && !follows(s, k) {
		return fan
	}
	whole, part := math.Modf(fan * f.level)
	if part > f.chance {
		whole++
	}
	if f.most > 0 {
		whole = min(whole, float64(f.most))
	}
	return min(whole, mostItems)
}

// mostItems bounds the items that a frame shows: items are counted in 32 bits.
const mostItems = 1 << 16

// Balloon implements Frame.
func (f *frame) Balloon(s serving.StageID) float64 {
	if f.scenes.Balloons == nil || !f.scenes.Balloons(s) {
		return 1
	}
	return f.balloon
}
