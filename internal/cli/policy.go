package cli

import (
	"flag"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/policies"
)

func policyCommand() command {
	return command{
		name: "policy", summary: "make, look at and check the policies that choose variants by the state of a queue",
		usage: "generate | show | verify",
		about: `
A policy says for every state of a queue, how many queries wait and how much time the first of them has left,
which variant to run on how many of them. It is made in advance for an arrival rate and promises an accuracy and
a share of late queries. Systems whose planner makes policies (ramsis and its kin) have a set of them, for rates
up to what the workers carry; they are kept in the folder sluice.policies beside the sluice.yaml, where every
command finds them again.`,
		examples: "sluice policy generate -f sluice.yaml\nsluice policy show -f sluice.yaml --rate 100\nsluice " +
			"policy verify -f sluice.yaml",
		verbs: []command{policyGenerateCommand(), policyShowCommand(), policyVerifyCommand()},
	}
}

// policyFlags are common to the verbs.
type policyFlags struct {
	file, profile, system, rates *string
	asJSON                       *bool
}

func declarePolicy(fs *flag.FlagSet, rates string) *policyFlags {
	return &policyFlags{
		file:    fs.String("f", "sluice.yaml", "configuration `file`"),
		profile: fs.String("profile", "", "profile `file` instead of those of the configuration"),
		system:  fs.String("system", "", "another `system` than the configuration's"),
		rates:   fs.String("rates", "", rates),
		asJSON:  fs.Bool("json", false, "print JSON"),
	}
}

// make reads the configuration and makes the missing policies. It also returns the rates of the flags.
func (p *policyFlags) make(e *Env) (*host.Opened, *policies.Sets, []float64, error) {
	var rates []float64
	if *p.rates != "" {
		var err error
		if rates, err = parseRates(*p.rates); err != nil {
			return nil, nil, nil, err
		}
	}
	o, err := openUnder(e, *p.file, *p.system)
	if err != nil {
		return nil, nil, nil, err
	}
	profiled, err := o.Profile(paths(*p.profile)...)
	if err != nil {
		return nil, nil, nil, err
	}
	sets, err := policies.Make(e.Context, profiled, rates)
	e.bar.clear()
	return o, sets, rates, err
}

// parseRates reads numbers separated by commas and sorts them.
func parseRates(text string) ([]float64, error) {
	var out []float64
	for _, x := range strings.Split(text, ",") {
		r, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		if err != nil || !(r > 0) || r > 1e9 {
			return nil, fault.Errorf(fault.Usage,
				"%q is not a rate: want numbers of queries/s above 0, separated by commas",
				strings.TrimSpace(x))
		}
		out = append(out, r)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
