package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlutil "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/partition"
	"github.com/sluice-serving/sluice/operator/render"
)

// annotationDeal has what was given to a cell on its ConfigMap: a partition.Cell as JSON. The next partition starts
// from it.
const annotationDeal = "sluice.dev/deal"

// decision is what a fleet is to be.
type decision struct {
	parts []partition.Cell
	cells []*render.Output // by cell
	// refused says why an app or machine type is left out, by name.
	refusedApps, refusedTypes map[string]string
}

// wholeFleet is the number under which a fleet's check is remembered, in place of a cell's.
const wholeFleet = -1

// cellOf returns the number of a cell by its ConfigMap; false for others.
func cellOf(fleet string, m *corev1.ConfigMap) (int32, bool) {
	n, err := strconv.ParseInt(m.Labels[v1alpha1.LabelCell], 10, 32)
	return int32(n), err == nil && n >= 0 && m.Name == cell.Name(fleet, int32(n))
}

// decide divides a fleet among cells and makes their configurations. An error is of the fleet itself.
func (r *fleets) decide(f *fleet) (*decision, error) {
	whole := &render.Input{Fleet: f.Fleet, Cell: wholeFleet, Apps: f.apps, Types: f.types, Most: map[string]int32{}}
	for _, t := range f.types {
		whole.Most[t.Name] = min(t.Spec.Most, 1) // names and fields are checked, not how many there are
	}
	checked, err := r.made.render(whole)
	if err != nil {
		return nil, err
	}
	d := &decision{refusedApps: checked.RefusedApps, refusedTypes: checked.RefusedTypes}
	// What cannot be used is not dealt: it would take a dispatcher and machines.
	usable := &fleet{Fleet: f.Fleet}
	for _, a := range f.apps {
		if d.refusedApps[a.Name] == "" {
			usable.apps = append(usable.apps, a)
		}
	}
	for _, t := range f.types {
		if d.refusedTypes[t.Name] == "" {
			usable.types = append(usable.types, t)
		}
	}
	d.parts = partition.Partition(toPartition(usable), partitionBefore(f))
	worker := cell.Machines{Image: r.o.Image, PullPolicy: r.o.PullPolicy, PullSecrets: r.o.PullSecrets}
	byName := map[string]*v1alpha1.InferenceApp{}
	for _, a := range f.apps {
		byName[a.Name] = a
	}
	for at := range d.parts {
		c := &d.parts[at]
		in := &render.Input{Fleet: f.Fleet, Cell: int32(at), Types: usable.types, Most: c.Most, Budget: c.Budget,
			Shares: c.Shares, Profiles: f.profiles, Worker: worker}
		for _, name := range c.Apps {
			in.Apps = append(in.Apps, byName[name])
		}
		out, err := r.made.render(in)
		if err != nil {
			return nil, err
		}
		d.cells = append(d.cells, out)
	}
	return d, nil
}

// toPartition is what there is to divide of a fleet.
func toPartition(f *fleet) *partition.Fleet {
	out := &partition.Fleet{Dispatchers: f.Spec.Dispatchers, Most: map[string]int32{}, Prices: map[string]float64{},
		CellRate: float64(cmp.Or(f.Spec.DispatcherRate, defaultDispatcherRate))}
	if f.Spec.Budget != nil {
		out.Budget = f.Spec.Budget.AsApproximateFloat64()
	}
	for _, t := range f.types {
		out.Most[t.Name] = t.Spec.Most
		if p := t.Spec.PricePerHour; p != nil && t.Spec.Tenure == v1alpha1.Rented {
			out.Prices[t.Name] = p.AsApproximateFloat64()
		}
	}
	for _, a := range f.apps {
		out.Apps = append(out.Apps, partition.App{Name: a.Name, Load: load(a), Rate: rate(a), Whole: stateful(a)})
	}
	slices.SortFunc(out.Apps, func(a, b partition.App) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// defaultDispatcherRate is that of the resource's definition, for fleets from other sources.
const defaultDispatcherRate = 5000

// stateful reports whether queries of an app depend on those before them.
func stateful(a *v1alpha1.InferenceApp) bool {
	return slices.ContainsFunc(a.Spec.Stages, func(s v1alpha1.Stage) bool { return s.Stateful })
}

// load is how much machine time an app needs at a guess, in machines: its rate, seen or expected, times its objective,
// which grows with the size of its models.
func load(a *v1alpha1.InferenceApp) float64 { return rate(a) * a.Spec.Objective.Latency.Seconds() }

// rate is how many queries/s an app has, seen or expected.
func rate(a *v1alpha1.InferenceApp) float64 {
	rate := 0.0
	if a.Spec.Demand != nil {
		rate = a.Spec.Demand.AsApproximateFloat64()
	}
	if seen, err := strconv.ParseFloat(a.Status.Rate, 64); err == nil && seen > rate {
		rate = seen
	}
	return rate
}

// partitionBefore is the partition in force, as the cells' ConfigMaps have it.
func partitionBefore(f *fleet) (out []partition.Cell) {
	for at := int32(0); ; at++ {
		m := f.configs[at]
		if m == nil {
			return out
		}
		var c partition.Cell
		if json.Unmarshal([]byte(m.Annotations[annotationDeal]), &c) != nil {
			c = partition.Cell{} // somebody has changed it: dealt as if it were new
		}
		out = append(out, c)
	}
}

// writeCells makes the ConfigMaps of the cells, and removes those that are no more. It reports whether it wrote one.
// Those that receive apps come first, so that an app that moves is in two cells for a moment rather than in none.
func (r *fleets) writeCells(ctx context.Context, f *fleet, d *decision) (wrote bool, err error) {
	var errs []error
	order := make([]int, len(d.parts))
	gains := make([]bool, len(d.parts))
	for at := range order {
		order[at] = at
		gains[at] = r.gains(f, int32(at), d.parts[at].Apps)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case gains[a] && !gains[b]:
			return -1
		case gains[b] && !gains[a]:
			return 1
		}
		return 0
	})
	for _, at := range order {
		did, err := r.writeCell(ctx, f, int32(at), &d.parts[at], d.cells[at])
		errs, wrote = append(errs, err), wrote || did
	}
	for n, m := range f.configs {
		if int(n) >= len(d.parts) {
			errs = append(errs, r.remove(ctx, m))
		}
	}
	return wrote, errors.Join(errs...)
}

// gains reports whether a cell gets an app that it did not have.
func (r *fleets) gains(f *fleet, at int32, apps []string) bool {
	before := partitionBefore(f)
	if int(at) >= len(before) {
		return true
	}
	return slices.ContainsFunc(apps, func(a string) bool { return !slices.Contains(before[at].Apps, a) })
}

func (r *fleets) writeCell(ctx context.Context, f *fleet, at int32, c *partition.Cell, made *render.Output) (bool,
	error) {
	text, err := json.Marshal(c)
	if err != nil {
		return false, err
	}
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: cell.Name(f.Name, at), Namespace: f.Namespace, Labels: labelsOf(f, ""),
		Annotations: map[string]string{annotationDeal: string(text)},
	}}
	want.Labels[v1alpha1.LabelCell] = strconv.Itoa(int(at))
	if len(made.Files) == 0 && f.configs[at] == nil {
		return false, nil // nothing can be served yet
	}
	if err := cell.Put(made.Files, want); err != nil {
		return false, err
	}
	if err := ctrlutil.SetControllerReference(f.Fleet, want, r.Scheme()); err != nil {
		return false, err
	}
	if len(made.Files) == 0 {
		return true, r.remove(ctx, want)
	}
	if have := f.configs[at]; have != nil && maps.Equal(have.Data, want.Data) && equalBytes(have, want) &&
		have.Annotations[annotationDeal] == want.Annotations[annotationDeal] {
		return false, nil
	}
	if _, err := r.apply(ctx, want, &corev1.ConfigMap{}); err != nil {
		return false, err
	}
	note := fmt.Sprintf("cell %d serves %s (%s) with up to %s", at, plural(len(made.Apps), "app"),
		shorten(made.Apps), counted(c.Most))
	if c.Budget > 0 {
		note += fmt.Sprintf(" for at most %.4g $/h", c.Budget)
	}
	r.events.Eventf(f.Fleet, nil, corev1.EventTypeNormal, "Dealt", "Deal", "%s", note)
	return true, nil
}

func equalBytes(a, b *corev1.ConfigMap) bool {
	return maps.EqualFunc(a.BinaryData, b.BinaryData, func(x, y []byte) bool { return string(x) == string(y) })
}

// shorten lists some names.
func shorten(names []string) string {
	const shown = 8
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// counted writes machines by type.
func counted(most map[string]int32) string {
	var out []string
	for _, t := range slices.Sorted(maps.Keys(most)) {
		out = append(out, fmt.Sprintf("%d %s", most[t], t))
	}
	return shorten(out)
}

// memory keeps the last configuration that was made of each cell: a fleet is looked at more often than it changes.
type memory struct {
	mu    sync.Mutex
	cells map[string]remembered
}

type remembered struct {
	key string
	out *render.Output
}

// render is render.Cell, from memory where the input is the same.
func (m *memory) render(in *render.Input) (*render.Output, error) {
	name := fmt.Sprintf("%s/%s/%d", in.Fleet.Namespace, in.Fleet.Name, in.Cell)
	key := inputKey(in)
	m.mu.Lock()
	if x, ok := m.cells[name]; ok && x.key == key {
		m.mu.Unlock()
		return x.out, nil
	}
	m.mu.Unlock()
	out, err := render.Cell(in)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells == nil {
		m.cells = map[string]remembered{}
	}
	m.cells[name] = remembered{key, out}
	return out, nil
}

// forget drops the cells of a fleet.
func (m *memory) forget(fleet types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.cells, func(name string, _ remembered) bool {
		return strings.HasPrefix(name, fleet.Namespace+"/"+fleet.Name+"/")
	})
}

// inputKey changes when the input does.
func inputKey(in *render.Input) string {
	var b strings.Builder
	add := func(o metav1.Object) {
		fmt.Fprintf(&b, "%s %s %d\n", o.GetName(), o.GetUID(), o.GetGeneration())
	}
	add(in.Fleet)
	for _, a := range in.Apps {
		add(a)
	}
	b.WriteByte('\n')
	for _, t := range in.Types {
		add(t)
	}
	b.WriteByte('\n')
	for _, p := range in.Profiles {
		add(p)
	}
	fmt.Fprintf(&b, "%v %v %v %s\n", in.Most, in.Shares, in.Budget, in.Worker.Image)
	return b.String()
}
