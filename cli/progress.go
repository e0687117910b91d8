package cli

import (
	"fmt"
	"strings"
	"time"
)

// progress draws a bar on a terminal for anything that takes longer than two seconds, and nothing elsewhere.
type progress struct {
	e     *Env
	begun time.Time
	drawn time.Time
	wide  int
}

func newProgress(e *Env) *progress { return &progress{e: e, begun: time.Now()} }

// show tells that a share in [0, 1] of what is done. It may be called as often as one likes.
func (p *progress) show(share float64, what string) {
	now := time.Now()
	if !p.e.Terminal || now.Sub(p.begun) < 2*time.Second || now.Sub(p.drawn) < 100*time.Millisecond && share < 1 {
		return
	}
	p.drawn = now
	share = min(max(share, 0), 1)
	const cells = 30
	full := int(share * cells)
	left := ""
	if spent := now.Sub(p.begun); share > 0.02 && share < 1 {
		left = fmt.Sprintf(", %v left", (time.Duration(float64(spent) * (1 - share) / share)).Round(time.Second))
	}
	line := fmt.Sprintf("[%s%s] %3.0f %%%s  %s", strings.Repeat("#", full), strings.Repeat(".", cells-full), 100*share,
		left, what)
	pad := max(p.wide-len(line), 0)
	p.wide = len(line)
	fmt.Fprintf(p.e.Stderr, "\r%s%s", line, strings.Repeat(" ", pad))
}

// done takes the bar away.
func (p *progress) done() {
	if p.wide > 0 {
		fmt.Fprintf(p.e.Stderr, "\r%s\r", strings.Repeat(" ", p.wide))
		p.wide = 0
	}
}
