package dataplane

import (
	"container/list"

	"github.com/sluice-serving/sluice/serving"
)

// streams gives the streams of clients numbers. A number is never given twice; a stream that was forgotten gets a new one when it
// comes again. Only streams without a query under way are forgotten, the one first that has been silent longest, so that the
// queries of a stream that are there together share a number.
type streams struct {
	most   int // remembered while nothing of them is under way
	last   uint64
	byName map[streamName]*stream
	silent list.List // of streamName, the longest silent in front
}

type streamName struct {
	app  serving.AppID
	name string
}

type stream struct {
	number uint64
	open   int           // queries under way
	place  *list.Element // in silent; nil while queries are under way
}

// enter counts a query of a stream in and returns the stream's number.
func (s *streams) enter(n streamName) uint64 {
	x := s.byName[n]
	if x == nil {
		s.last++
		x = &stream{number: s.last}
		s.byName[n] = x
	}
	if x.place != nil {
		s.silent.Remove(x.place)
		x.place = nil
	}
	x.open++
	return x.number
}

// leave counts a query of a stream out; ended says that the stream has ended with it.
func (s *streams) leave(n streamName, ended bool) {
	x := s.byName[n]
	if x == nil {
		return
	}
	x.open--
	switch {
	case x.open > 0:
	case ended:
		delete(s.byName, n)
	default:
		x.place = s.silent.PushBack(n)
		for s.silent.Len() > s.most {
			front := s.silent.Front()
			delete(s.byName, front.Value.(streamName))
			s.silent.Remove(front)
		}
	}
}
