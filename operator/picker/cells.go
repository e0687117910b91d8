package picker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/board"
)

// Bounds of what is read of a dispatcher.
const (
	cellTimeout = 2 * time.Second
	cellBytes   = 32 << 20
)

// serves is a machine of a cell that serves an app by the plan.
type serves struct {
	app, machine, model string
	share               float64
}

// cellState is what a cell's dispatcher says of it.
type cellState struct {
	machines board.Machines
	plan     board.PlanView // in force; number 0 for none
}

// ask reads a cell's state at its holder's admin address. The plan is read again only where it is another.
func ask(ctx context.Context, c *http.Client, admin string, cell int, before *cellState) (*cellState, error) {
	ctx, cancel := context.WithTimeout(ctx, cellTimeout)
	defer cancel()
	base := fmt.Sprintf("http://%s/cells/%d/api/v1/", admin, cell)
	var out cellState
	var overview struct {
		Plan *struct {
			Number int `json:"number"`
		} `json:"plan"`
	}
	if err := get(ctx, c, base+"overview", &overview); err != nil {
		return nil, err
	}
	if err := get(ctx, c, base+"machines", &out.machines); err != nil {
		return nil, err
	}
	switch {
	case overview.Plan == nil:
	case before != nil && before.plan.Number == overview.Plan.Number:
		out.plan = before.plan
	default:
		if err := get(ctx, c, fmt.Sprintf("%splans/%d", base, overview.Plan.Number), &out.plan); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

func get(ctx context.Context, c *http.Client, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, cellBytes)).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// serving lists which machines serve which apps: those of one stage, where a variant is loaded and the plan gives the
// machine a part of the app's requests.
func (s *cellState) serving() (out []serves) {
	stages := map[string]int{}
	for _, st := range s.machines.Stages {
		stages[st.App]++
	}
	planned := map[string]bool{}
	for _, r := range s.plan.Rows {
		planned[r.App] = planned[r.App] || r.Share > 0
	}
	m := &s.machines
	for _, w := range m.States {
		if w.Worker < 0 || w.Worker >= len(m.Workers) {
			continue
		}
		at := m.Workers[w.Worker]
		for _, i := range w.Instances {
			if i.State != "ready" || int(i.Stage) >= len(m.Stages) || i.Stage < 0 || at.Kind < 0 ||
				at.Kind >= len(m.Kinds) {
				continue
			}
			app := m.Stages[i.Stage].App
			var loaded []string
			for _, v := range i.Variants {
				if !v.Loading && v.Variant >= 0 && int(v.Variant) < len(m.Variants) {
					loaded = append(loaded, m.Variants[v.Variant])
				}
			}
			if len(loaded) == 0 || stages[app] != 1 {
				continue
			}
			x := serves{app, at.Name, loaded[0], 1}
			if planned[app] {
				x.model, x.share = s.planned(app, m.Kinds[at.Kind].Name, loaded)
			}
			if x.share > 0 {
				out = append(out, x)
			}
		}
	}
	return out
}

// planned returns the variant that an instance is to run and its part of the app's requests.
func (s *cellState) planned(app, kind string, loaded []string) (model string, share float64) {
	for _, r := range s.plan.Rows {
		if r.App != app || r.Kind != kind || len(r.Variants) == 0 || r.Instances == 0 ||
			!slices.Contains(loaded, r.Variants[0]) {
			continue
		}
		if part := r.Share / float64(r.Instances); part > share {
			model, share = r.Variants[0], part
		}
	}
	return model, share
}
