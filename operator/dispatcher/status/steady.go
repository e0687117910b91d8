package status

import (
	"math"
	"strconv"
	"time"
)

// Figures under load are never twice the same, and every write is a call that others watch. So a figure that is shown
// stays until the true one differs by more than a reader would care for.

// relative is the share by which a figure must differ from the one shown.
const relative = 0.1

// steady is a figure that is shown.
type steady struct {
	shown float64
	set   bool
}

// show returns what to show for x: what was shown, unless x differs by a tenth or, below least, by least.
func (s *steady) show(x, least float64) float64 {
	if !s.set || math.Abs(x-s.shown) > max(relative*math.Abs(s.shown), least) || (x == 0) != (s.shown == 0) {
		s.shown, s.set = x, true
	}
	return s.shown
}

// number writes a figure with three digits and no exponent.
func number(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	scale := math.Pow(10, float64(digits))
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', max(0, digits), 64)
}

// trimmed is number without zeros at the end.
func trimmed(x float64) string {
	f, err := strconv.ParseFloat(number(x), 64)
	if err != nil {
		return number(x)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// percent writes a share, such as 0.4%.
func percent(x float64) string { return strconv.FormatFloat(math.Round(x*1000)/10, 'f', -1, 64) + "%" }

// mostWaits is how many times the least time lies between two writes of a status at most while its conditions stay.
const mostWaits = 6

// due reports whether a status that differs from what was written is to be written now, and takes it that it is. A
// condition that has changed waits for the least time, every. Figures that follow each other, because much moves, are
// written ever less often.
func (e *entry) due(judged string, now time.Time, every time.Duration) bool {
	since := now.Sub(e.at)
	if since < every || now.Before(e.after) || judged == e.judged && since < e.wait {
		return false
	}
	if e.wait = min(2*e.wait, mostWaits*every); judged != e.judged || since > mostWaits*every {
		e.wait = every
	}
	e.at = now
	return true
}
