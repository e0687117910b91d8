package reproduce

import (
	"math"
	"slices"
)

// Sheet is one figure while it is declared. Rows, charts and notes are stated together with the tasks whose results
// they show; their numbers are read when the tasks have run. They come out in the order in which they were stated.
type Sheet struct {
	Paper, Figure string
	run           *Runner
}

// Part returns the sheet of a figure that is declared together with this one, such as "13b" with "13".
func (s *Sheet) Part(figure string) *Sheet { return &Sheet{s.Paper, figure, s.run} }

// Note adds notes.
func (s *Sheet) Note(notes ...string) { s.run.AddNotes(notes...) }

// Report adds what rows and charts cannot state. It is called after the tasks have run.
func (s *Sheet) Report(add func(*Outcome) error) { s.run.Report(add) }

// Place is a setting of a figure, in which systems are compared.
type Place struct {
	sheet   *Sheet
	setting map[string]string
}

// At returns the place with a setting: names and values in turn.
func (s *Sheet) At(pairs ...any) Place { return Place{s, Setting(pairs...)} }

// Entry is a row whose numbers are not known yet.
type Entry struct {
	row     Row
	oneSeed bool
}

// Named returns a row of the place without numbers.
func (p Place) Named(system, quantity, unit string) Row {
	return Row{Paper: p.sheet.Paper, Figure: p.sheet.Figure, System: system, Quantity: quantity, Unit: unit,
		Setting: p.setting}
}

// Row adds a row with one number for each seed. It adds none where a number is not finite: there is nothing to show.
func (p Place) Row(system, quantity, unit string, values Values) *Entry {
	e := &Entry{row: p.Named(system, quantity, unit)}
	p.sheet.Report(func(o *Outcome) error {
		v := values()
		if len(v) == 0 || slices.ContainsFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			return nil
		}
		o.AddRow(e.row, v...)
		if e.oneSeed {
			o.Rows[len(o.Rows)-1].Seeds = 1
		}
		return nil
	})
	return e
}

// OneSeed says that the row's numbers are all of one seed: they differ in something else.
func (e *Entry) OneSeed() { e.oneSeed = true }

// Published puts the number that a source gives beside the measured one. NaN stands for none.
func (e *Entry) Published(value float64, source string) *Entry {
	if !math.IsNaN(value) {
		e.row = e.row.WithPublished(value, source)
	}
	return e
}

// In returns what a table of published numbers has for a key, NaN where it has nothing.
func In[K comparable](table map[K]float64, key K) float64 {
	if v, ok := table[key]; ok {
		return v
	}
	return math.NaN()
}

// InList is In for tables with a list for each key.
func InList[K comparable](table map[K][]float64, key K, at int) float64 {
	if v := table[key]; v != nil {
		return v[at]
	}
	return math.NaN()
}

// Quantity is a number that is read off every result of type T.
type Quantity[T any] struct {
	Name, Unit string
	Of         func(T) float64
}

// AddRows adds a row of a system for each quantity. It returns them by the names of the quantities.
func AddRows[T any](at Place, system string, of Runs[T], quantities []Quantity[T]) map[string]*Entry {
	out := make(map[string]*Entry)
	for _, q := range quantities {
		out[q.Name] = at.Row(system, q.Name, q.Unit, of.Each(q.Of))
	}
	return out
}
