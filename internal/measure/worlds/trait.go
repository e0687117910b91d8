package worlds

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
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
	Targets       Trait = "targets"
	Large         Trait = "large"
	Ramp          Trait = "ramp"
	Lengths       Trait = "lengths"
	Confidences   Trait = "confidence"
)

// Meaning is a trait in words.
type Meaning struct {
	Trait Trait
	Doc   string
}

// Vocabulary lists the traits and what they mean.
func Vocabulary() []Meaning { return slices.Concat(vocabulary, later, beside) }

// Count is how many numbers a seed has to be asked for: each number below plain gives a world two traits, and those
// have each trait meet three others at least. Two for each of the crossings follow.
func Count() int { return plain() + 2*len(crossings) }

// plain is from which number on worlds have traits of later. Those below are as they were before these traits came.
func plain() int { return 3 * len(vocabulary) }

// later are traits that worlds of numbers from plain on have, beside those that their number gives them.
var later = []Meaning{
	{Large, "50 to 200 machines, and a load of 10 s instead of 30; without it at most 16"},
	{Ramp, "demand of all apps that goes from level to level within a second, from a quarter of its peak to all of it"},
}

// crossings are which of them a world has, by its number in turn, and what makes them hard.
var crossings = [...][]Trait{{Large}, {Ramp}, {Large, Ramp, LittleMemory}}

// beside are traits that worlds have beside those of their number. Each is drawn from chance of its own, so that worlds
// are otherwise as they would be without it.
var beside = []Meaning{
	{Targets, "mean accuracies to keep for some apps, beside the floors"},
	{Lengths, "queries of many lengths, log-normal or those of real prompts; only where it is asked for"},
	{Confidences, "variants that know how sure they are of an answer; only where it is asked for"},
}

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
var exclude = [][2]Trait{
	{Overload, LowLoad}, {RealTrace, Moving}, {RealTrace, Clumps}, {Overload, Rent}, {Large, Crowded}, {Ramp, Moving},
	{Ramp, RealTrace},
}

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
	if number >= plain() {
		for _, t := range crossings[(number-plain())%len(crossings)] {
			add(t)
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

// targetChance is the probability that a world has targets, and targeted that an app of such a world has one.
const targetChance, targeted = 0.3, 0.7

// targets gives apps accuracy targets between the least and the best accuracy of their answers. It changes nothing else
// of the world.
func (g *generator) targets() {
	r := workload.Rand(g.w.Seed, fmt.Sprintf("world %d, targets", g.w.Number))
	if r.Float64() >= targetChance {
		return
	}
	some := false
	for a := range g.w.Spec.Apps {
		app := &g.w.Spec.Apps[a]
		best, least := g.w.Spec.BestAccuracy(serving.AppID(a)), 1.0
		for _, s := range app.Stages {
			of := 1.0
			for _, v := range g.w.Spec.Stages[s].Variants {
				of = min(of, g.w.Spec.Variants[v].Accuracy)
			}
			least *= of
		}
		if len(app.Stages) == 1 {
			least = max(least, app.Floor)
		}
		part, has := 0.3+0.6*r.Float64(), r.Float64() < targeted
		if target := to(least+part*(best-least), 1000); has && target > least && target < best {
			app.AccuracyTarget, some = target, true
		}
	}
	if some {
		g.w.Traits = append(g.w.Traits, Targets)
	}
}

// place is a trait's position in the vocabulary.
func place(t Trait) int {
	return slices.IndexFunc(Vocabulary(), func(m Meaning) bool { return m.Trait == t })
}
