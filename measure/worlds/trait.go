package worlds

import (
	"math/rand/v2"
	"slices"
)

// Trait is a property of a world that some systems are made for and others are not.
type Trait string

// The traits. A world has some of them; without a trait it has the plain form, which Vocabulary names.
const (
	MixedMachines Trait = "mixed-machines"
	ManyApps      Trait = "many-apps"
	Crowded       Trait = "crowded"
	OneVariant    Trait = "one-variant"
	Sizes         Trait = "sizes"
	Graphs        Trait = "graphs"
	LittleMemory  Trait = "little-memory"
	Clumps        Trait = "clumps"
	Moving        Trait = "moving"
	Overload      Trait = "overload"
	LowLoad       Trait = "low-load"
	Weights       Trait = "weights"
	Floors        Trait = "floors"
	Rent          Trait = "rent"
	Scatter       Trait = "scatter"
	RealTrace     Trait = "trace"
)

// Meaning is a trait in words.
type Meaning struct {
	Trait Trait
	Doc   string
}

// Vocabulary lists the traits and what they mean.
func Vocabulary() []Meaning { return slices.Clone(vocabulary) }

var vocabulary = []Meaning{
	{MixedMachines, "two or three kinds of machine, of different speed; without it one"},
	{ManyApps, "6 to 14 apps; without it 1 to 4"},
	{Crowded, "fewer workers than apps"},
	{OneVariant, "one variant for each stage; without it ladders of 2 to 6, the more accurate the slower"},
	{Sizes, "queries of many sizes; without it of one item"},
	{Graphs, "apps of two and three stages, with fan-outs and joins"},
	{LittleMemory, "machines hold a part of the variants; without it all of them"},
	{Clumps, "arrivals in clumps, with gamma gaps of shape 0.05 to 0.3; without it Poisson, or gamma of up to 1"},
	{Moving, "demand that moves from app to app, or rises and falls where there is one"},
	{Overload, "more queries than the machines carry, whichever variants they use"},
	{LowLoad, "fewer queries than the most accurate variants carry; without both, something between"},
	{Weights, "apps of different importance"},
	{Floors, "accuracies below which no answer is wanted"},
	{Rent, "machines with prices, more of them than the load needs"},
	{Scatter, "run times that scatter, with deviations of up to a third; without it batches take their mean"},
	{RealTrace, "arrivals of a real trace, scaled: code completions, functions, or families of models"},
}

// exclude lists traits that contradict each other. The first of a pair that is drawn stays.
var exclude = [][2]Trait{{Overload, LowLoad}, {RealTrace, Moving}, {RealTrace, Clumps}, {Overload, Rent}}

// chance is the probability of a trait that a world's number does not give it.
const chance = 0.17

// draw draws the traits of a world. Its number gives it two, so that every pair of traits meets in some world.
func draw(r *rand.Rand, number int) (out []Trait) {
	n := len(vocabulary)
	has := func(t Trait) bool { return slices.Contains(out, t) }
	add := func(t Trait) {
		for _, x := range exclude {
			if x[0] == t && has(x[1]) || x[1] == t && has(x[0]) {
				return
			}
		}
		if !has(t) {
			out = append(out, t)
		}
	}
	first := number % n
	add(vocabulary[first].Trait)
	add(vocabulary[(first+1+number/n%(n-1))%n].Trait)
	for _, m := range vocabulary {
		if r.Float64() < chance {
			add(m.Trait)
		}
	}
	slices.SortFunc(out, func(a, b Trait) int { return place(a) - place(b) })
	return out
}

// place is a trait's position in the vocabulary.
func place(t Trait) int {
	return slices.IndexFunc(vocabulary, func(m Meaning) bool { return m.Trait == t })
}
