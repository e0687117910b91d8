package planning

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/questions"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/internal/systems"
)

// maxShown is the number of bottlenecks that are listed. The others matter little.
const maxShown = 4

// DiagnosisText returns in words why a demand cannot be carried, and lists of what keeps it from it and of changes with
// which it could be. All are empty where the demand is carried, or nothing was diagnosed.
func (v *Plan) DiagnosisText() (summary []string, lists []questions.AdviceList) {
	d := v.Diagnosis
	if d == nil || !v.FallsShort() && d.Carried {
		return nil, nil
	}
	summary = []string{v.verdict(d)}
	if !d.Carried && d.Bound > d.Multiple*1.005 {
		summary = append(summary, fmt.Sprintf("(More than %s is ruled out; between the two the search gave up.)",
			quantity.Multiple(d.Bound)))
	}
	list := func(title string, n int, of func(i int) questions.Advised) {
		if n == 0 {
			return
		}
		x := questions.AdviceList{Title: title}
		for i := range n {
			x.Items = append(x.Items, of(i))
		}
		lists = append(lists, x)
	}
	list("What nothing serves:", len(d.Unserved), func(i int) questions.Advised {
		return questions.Advised{Text: d.Unserved[i].Text}
	})
	if len(d.Unserved) == 0 {
		shown := min(len(d.Bottlenecks), maxShown)
		more := 0
		if len(d.Bottlenecks) > maxShown {
			more = 1
		}
		list("What keeps it from being carried:", len(d.Limits)+shown+more, func(i int) questions.Advised {
			switch k := i - len(d.Limits); {
			case k < 0:
				return questions.Advised{Text: d.Limits[i].Text}
			case k < shown:
				return questions.Advised{Text: d.Bottlenecks[k].Text}
			}
			return questions.Advised{Text: fmt.Sprintf("and %d more apps, less so", len(d.Bottlenecks)-maxShown)}
		})
	}
	demands := 0
	remedies := slices.DeleteFunc(slices.Clone(d.Remedies), func(m Remedy) bool {
		if m.Kind == "demand" {
			demands++
		}
		return demands > maxShown
	})
	title := "Any one of these would mend it:"
	if len(remedies) == 1 {
		title = "This would mend it:"
	}
	list(title, len(remedies), func(i int) questions.Advised {
		return questions.Advised{Text: remedies[i].Text, Remedy: remedies[i].asked()}
	})
	if !d.Carried && len(d.Remedies) == 0 {
		lists = append(lists,
			questions.AdviceList{Title: "No change of one kind mends it: not more workers, budget or " +
				"memory, lower floors, longer SLOs or less demand of one app."})
	}
	return summary, lists
}

// verdict is the first sentence of a diagnosis.
func (v *Plan) verdict(d *Diagnosis) string {
	by := ""
	if v.Adviser != "" {
		by = fmt.Sprintf(", with planner %s, which may put any variant on any worker,", v.Adviser)
	}
	head := ""
	if d.Headroom > 1 {
		head = fmt.Sprintf(", with %s head-room", quantity.Percent(d.Headroom-1))
	}
	switch {
	case d.Carried:
		return fmt.Sprintf("The fleet%s would carry this demand up to %s; system %s does not.", by,
			quantity.Multiple(d.Multiple), v.System)
	case len(d.Unserved) > 0:
		return fmt.Sprintf("This demand cannot be carried%s: there are apps that nothing serves.",
			strings.TrimSuffix(by, ","))
	case !v.FallsShort() && len(v.MissedTargets()) > 0:
		return fmt.Sprintf("This demand is carried, but not at every accuracy_target: at them, %s can be.",
			quantity.Multiple(d.Multiple))
	case !v.FallsShort():
		return fmt.Sprintf("This demand is carried, but not with the head-room of %s that is planned for: with it, "+
			"%s can be.", quantity.Percent(d.Headroom-1), quantity.Multiple(d.Multiple))
	}
	return fmt.Sprintf("This demand cannot be carried: the fleet%s carries %s of it at most, if every app is to get "+
		"the same part%s.", by, quantity.Multiple(d.Multiple), head)
}

// asked is the remedy without what no question "what if" can change; nil where that is a part of it.
func (m *Remedy) asked() *questions.Remedy {
	if len(m.Most)+len(m.Memory)+len(m.Demand)+len(m.Instances) > 0 || m.Kind == "options" {
		return nil
	}
	return &questions.Remedy{
		Add: m.Add, Budget: m.Budget, Floors: m.Floors, Targets: m.Targets, SLOs: m.SLOs,
	}
}

// Advise plans for a demand as 'sluice plan' does, with its diagnosis. It is a host.Adviser.
func Advise(ctx context.Context, p *host.Profiled, rates []float64) (*questions.Advice, error) {
	r, err := Plans(ctx, &Question{Of: p, Systems: []systems.System{p.System()}, Demands: []Demand{{Rates: rates}}})
	if err != nil {
		return nil, err
	}
	v := &r.Plans[0]
	out := &questions.Advice{
		System: v.System, Planner: v.Planner, Demand: v.Demand, Served: v.Served, Carried: !v.FallsShort(),
		Facts: v.Facts(),
	}
	out.Summary, out.Lists = v.DiagnosisText()
	if len(out.Summary) == 0 && v.Error != "" {
		out.Summary = []string{v.Error}
	}
	return out, nil
}
