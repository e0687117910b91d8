package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// A session is the streams of all clients of an app (Scrooge §3.1). Clients join and leave at any time. While it is
// present, a client sends queries, such as the frames of a video, at a constant rate.

// SessionsSpec describes the session of an app.
type SessionsSpec struct {
	// Clients is the number of clients that join and leave. Their two instants are drawn uniformly from the whole time,
	// again and again until they are at least StayS seconds apart.
	Clients int     `json:"clients,omitempty" yaml:"clients,omitempty"`
	StayS   float64 `json:"stay_s,omitempty" yaml:"stay_s,omitempty"`
	// Always is the number of further clients that are present all the time.
	Always int `json:"always,omitempty" yaml:"always,omitempty"`
	// RateMin and RateMax bound the rate of a client, which is drawn uniformly, in queries/s.
	RateMin float64 `json:"rate_min,omitempty" yaml:"rate_min,omitempty"`
	RateMax float64 `json:"rate_max,omitempty" yaml:"rate_max,omitempty"`
}

// Client is a client of an app's session. It sends the queries of one stream from From until Until.
type Client struct {
	App         serving.AppID
	Stream      uint64  // number of its stream, unique within the app
	Rate        float64 // queries/s
	From, Until serving.Time
}

// MaxClients is the most clients of a session.
const MaxClients = 100_000

// firstStream returns the number of an entry's first stream. Streams of different entries have different numbers,
// because entries may name the same app.
func firstStream(entry int) uint64 { return uint64(entry)<<32 + 1 }

func (a *AppSpec) checkSessions(duration time.Duration) error {
	if a.Rate != 0 || len(a.Rates) != 0 || a.Shape != 0 || len(a.Trace) != 0 {
		return errors.New("rates: given beside sessions, whose clients have rates of their own; keep one")
	}
	if err := a.Sessions.check(duration); err != nil {
		return fmt.Errorf("sessions.%w", err)
	}
	return nil
}

func (s *SessionsSpec) check(duration time.Duration) error {
	switch {
	case s.Clients < 0 || s.Always < 0 || s.Clients+s.Always < 1 || s.Clients > MaxClients || s.Always > MaxClients:
		return fmt.Errorf("clients and always: are %d and %d, want 1 to %d together", s.Clients, s.Always, MaxClients)
	case !(s.RateMin > 0 && s.RateMin <= s.RateMax && s.RateMax <= MaxRate):
		return fmt.Errorf("rate_min and rate_max: are %v and %v, want 0 < rate_min <= rate_max <= %g", s.RateMin,
			s.RateMax, float64(MaxRate))
	case duration < time.Millisecond:
		return fmt.Errorf(
			"clients: come and go over the workload's time, which is %v, want at least 1 ms: give duration_s", duration)
	case !(s.StayS >= 0 && s.StayS <= duration.Seconds()/2):
		return fmt.Errorf("stay_s: is %v, want a number in [0, %v], half of the workload's time", s.StayS,
			duration.Seconds()/2)
	}
	return nil
}

// draw returns the clients of a session in the order of their streams, which are numbered from first on.
func (s *SessionsSpec) draw(app serving.AppID, first uint64, duration time.Duration, r *rand.Rand) []Client {
	out := make([]Client, 0, s.Clients+s.Always)
	for k := range s.Clients + s.Always {
		x := Client{
			App: app, Stream: first + uint64(k), Until: serving.Time(duration),
			Rate: s.RateMin + (s.RateMax-s.RateMin)*r.Float64(),
		}
		for k >= s.Always {
			a, b := serving.Time(r.Int64N(int64(duration))), serving.Time(r.Int64N(int64(duration)))
			x.From, x.Until = min(a, b), max(a, b)
			if x.Until > x.From && x.Until.Sub(x.From).Seconds() >= s.StayS {
				break
			}
		}
		out = append(out, x)
	}
	return out
}

// Frames is the Times of a client's queries: one at From, then at equal gaps until Until.
type Frames struct {
	client Client
	n      int64
}

// NewFrames returns the times of a client's queries.
func NewFrames(s Client) *Frames { return &Frames{client: s} }

// NextTime implements Times.
func (f *Frames) NextTime() (serving.Time, bool) {
	after := math.Round(float64(f.n) / f.client.Rate * 1e9)
	if !(after < float64(f.client.Until-f.client.From)) {
		return 0, false
	}
	f.n++
	return f.client.From + serving.Time(after), true
}

// Clients returns the clients of all sessions in the order in which they join, nil without sessions. They are those
// whose queries Source returns. resolve and errors are as for Source.
func (s *Spec) Clients(resolve func(app string) (serving.AppID, error)) ([]Client, error) {
	if _, err := s.build(resolve); err != nil {
		return nil, err
	}
	var out []Client
	for i := range s.Apps {
		if a := &s.Apps[i]; a.Process == "sessions" {
			id, _ := resolve(a.App)
			out = append(out, s.clients(i, id)...)
		}
	}
	slices.SortStableFunc(out, func(a, b Client) int { return cmp.Compare(a.From, b.From) })
	return out, nil
}

func (s *Spec) clients(i int, app serving.AppID) []Client {
	return s.Apps[i].Sessions.draw(app, firstStream(i), s.Duration(), Rand(s.Seed, s.purpose("clients", i)))
}

// sessions returns the queries of entry i's session.
func (s *Spec) sessions(i int, template Arrival, sizes, lengths Sizes) Source {
	a := &s.Apps[i]
	var sources []Source
	for _, client := range s.clients(i, template.App) {
		template.Stream = client.Stream
		own := func(what string) *rand.Rand {
			return Rand(s.Seed, fmt.Sprintf("%s/%d", s.purpose(what, i), client.Stream-firstStream(i)))
		}
		sources = append(sources, &App{
			Times: NewFrames(client), Template: template, Sizes: sizes, SizeRand: own("items"), Lengths: lengths,
			LengthRand: own("lengths"), Samples: a.Samples, SampleRand: own("samples"),
		})
	}
	return Merge(sources...)
}
