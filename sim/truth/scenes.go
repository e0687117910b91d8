package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Video is how the content of a stream moves. It reproduces what Scrooge §2 and Figure 3 tell of three videos each:
// means of 8.94 and 0.37 items, a range of 0 to 8 within 200 frames; execution times of 0.686 to 1.102 s.
//
// The level of a video, how busy it is, is a log-normal process that returns to its mean (the exponential of an
// Ornstein-Uhlenbeck process, sampled exactly at the times of the frames): its mean is Level, its standard deviation
// Spread times that, and what is left of a deviation after Time is 1/e. A frame shows level x FanOut items for every
// item: the whole number below or above, by chance, so that the mean is kept. The ballooning factor is another such
// process with mean Balloon and relative deviation Swell.
type Video struct {
	Level            float64       // items per item, relative to the edge's FanOut; at least 0
	Deviation        float64       // at least 0; 0 keeps the level
	TimeConstant     time.Duration // of both processes, more than 0 unless Spread and Swell are 0
	MaxItems         int32         // items of a frame for each item, at most; 0 for no bound
	Balloon          float64       // 0 means 1
	BalloonDeviation float64       // at least 0
}

// Scenes is content made of videos: every stream shows one, drawn by chance, from its first query on.
type Scenes struct {
	Videos []Video
	// Follows tells which edges follow the content of a stream; nil means those whose FanOut is not 1. The others send
	// FanOut items for each.
	Follows func(s serving.StageID, k int) bool
	// Balloons tells the run times of which stages do; nil means none.
	Balloons func(s serving.StageID) bool

	spec    *serving.Spec
	seed    uint64
	streams map[streamKey]*streamState
}

type streamKey struct {
	app    serving.AppID
	stream uint64
}

// streamState is a stream's video where it stands.
type streamState struct {
	video        *Video
	rng          *rand.Rand
	at           serving.Time
	level, swell float64 // standard normal
}

// NewScenes returns content for the apps of spec. What a stream shows depends on the seed, its app, its number and the
// times of its queries, and not on other streams.
func NewScenes(spec *serving.Spec, seed uint64, videos ...Video) (*Scenes, error) {
	if len(videos) == 0 {
		return nil, fmt.Errorf("scenes: there is no video, want at least one")
	}
	for i, v := range videos {
		if !(v.Level >= 0 && v.Deviation >= 0 && v.BalloonDeviation >= 0 && v.Balloon >= 0) ||
			math.IsInf(v.Level+v.Deviation+v.BalloonDeviation+v.Balloon, 0) || v.MaxItems < 0 || v.TimeConstant <= 0 && v.Deviation+v.BalloonDeviation > 0 {
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
		// Two words make one for PCG; the multiplier keeps apps apart whose streams are numbered alike.
		s = &streamState{rng: rand.New(rand.NewPCG(c.seed, (uint64(q.App)+1)*0x9e3779b97f4a7c15^q.Stream)), at: q.Arrived}
		s.video = &c.Videos[s.rng.IntN(len(c.Videos))]
		s.level, s.swell = s.rng.NormFloat64(), s.rng.NormFloat64()
		c.streams[key] = s
	}
	s.move(q.Arrived)
	v := s.video
	f := &frame{
		scenes: c, level: v.Level * lognormal(s.level, v.Deviation), balloon: lognormal(s.swell, v.BalloonDeviation), most: v.MaxItems,
		chance: s.rng.Float64(),
	}
	if v.Balloon > 0 {
		f.balloon *= v.Balloon
	}
	return f
}

// move lets both processes run until now.
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

// lognormal turns a standard normal number into one with mean 1 and a standard deviation.
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

// mostItems bounds what a frame shows, however unlikely: items are counted in 32 bits.
const mostItems = 1 << 16

// Balloon implements Frame.
func (f *frame) Balloon(s serving.StageID) float64 {
	if f.scenes.Balloons == nil || !f.scenes.Balloons(s) {
		return 1
	}
	return f.balloon
}
