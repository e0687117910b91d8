package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names lists the registered names that a file may use. A nil list is not checked.
type Names struct {
	Systems, Routers, Batchers, Planners, Scalers []string
	// Settings lists the keys of a system that this program reads, such as batch or timeout; further settings are
	// listed as options.NAME. A setting that is not listed is a problem.
	Settings []string
	// Refused returns what is wrong with the settings of a system whose names and settings are all known, by setting.
	// Nil refuses none.
	Refused func(System) map[string]string
}

// settings are the keys of a system that depend on its components.
var settings = []string{"planner", "scaler", "batch", "timeout", "slack", "replan", "budget"}

// CheckNames returns a problem for every system, router, batcher, planner, scaler and setting of the file that n does
// not list, and for the settings that n refuses.
func (f *File) CheckNames(n Names) error {
	c := &checker{f: f, bad: map[string]bool{}}
	c.names(&f.System, "system", n)
	for i := range f.Apps {
		if s := f.Apps[i].System; s != nil {
			c.names(s, at("apps", i)+".system", n)
		}
	}
	return c.err()
}

func (c *checker) names(s *System, path string, n Names) {
	before := len(c.found)
	for _, x := range []struct {
		word, key, what string
		known           []string
	}{
		{s.Name, "name", "system", n.Systems},
		{s.Router, "router", "router", n.Routers},
		{s.Batcher, "batcher", "batcher", n.Batchers},
		{s.Planner, "planner", "planner", n.Planners},
		{s.Scaler, "scaler", "scaler", n.Scalers},
	} {
		if x.word != "" && x.known != nil {
			c.known(x.word, x.known, path+"."+x.key, x.what)
		}
	}
	given := slices.DeleteFunc(slices.Clone(settings), func(k string) bool { return !c.f.has(path + "." + k) })
	for _, k := range slices.Sorted(maps.Keys(s.Options)) {
		given = append(given, "options."+shown(k))
	}
	for _, k := range given {
		if n.Settings != nil && !slices.Contains(n.Settings, k) {
			c.addf(path+"."+k, "no system here uses this setting%s", similarSetting(k, n.Settings))
		}
	}
	if len(c.found) > before || n.Refused == nil {
		return
	}
	refused := n.Refused(*s)
	for _, k := range slices.Sorted(maps.Keys(refused)) {
		c.addf(path+"."+k, "%s", refused[k])
	}
}

// similarSetting compares only the last part of a setting: a common "options." would make short names look similar.
func similarSetting(k string, known []string) string {
	prefix, word := "", k
	if rest, ok := strings.CutPrefix(k, "options."); ok {
		prefix, word = "options.", rest
		if slices.Contains(known, rest) {
			return fmt.Sprintf(": %s stands beside options, not in it", rest)
		}
	}
	var last []string
	for _, s := range known {
		if rest, ok := strings.CutPrefix(s, prefix); ok && !strings.Contains(rest, ".") {
			last = append(last, rest)
		}
	}
	hint, _ := didYouMean(word, last)
	return hint
}
