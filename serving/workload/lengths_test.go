package workload

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

func TestParseLogNormal(t *testing.T) {
	got, err := ParseLogNormal("64:0.9:512")
	if err != nil || got.Distribution != "lognormal" || math.Abs(math.Exp(got.Mu)-64) > 1e-9 || got.Sigma != 0.9 ||
		got.Max != 512 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "64", "64:1", "0:1:9", "x:1:9", "64:11:9", "64:1:0", "64:1:9:1"} {
		if _, err := ParseLogNormal(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestParseList(t *testing.T) {
	got, err := ParseList(strings.NewReader("# prompts\n12\n\n 7 \n"))
	if err != nil || !slices.Equal(got, []int32{12, 7}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"0", "-1", "1.5", "9999999999"} {
		if _, err := ParseList(strings.NewReader("1\n" + bad)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want an error that names line 2", bad, err)
		}
	}
}

// Queries have the lengths of a list in turn, or those of a distribution; without any no length is known. What is drawn
// else is the same with lengths and without.
func TestLengths(t *testing.T) {
	resolve := func(string) (serving.AppID, error) { return 0, nil }
	arrivals := func(lengths ItemsSpec) []Arrival {
		s := Spec{Seed: 3, MaxCount: 200, Apps: []AppSpec{{App: "a", Rate: 10, Items: ItemsSpec{
			Distribution: "uniform", Min: 1, Max: 9}, Lengths: lengths}}}
		src, err := s.Source(resolve)
		if err != nil {
			t.Fatal(err)
		}
		return Collect(src, 1000)
	}
	without := arrivals(ItemsSpec{})
	listed := arrivals(ItemsSpec{Distribution: "file", File: "f", Listed: []int32{5, 6, 7}})
	drawn := arrivals(ItemsSpec{Distribution: "lognormal", Mu: 4, Sigma: 1, Max: 300})
	sum := 0.0
	for k := range without {
		if without[k].Length != 0 || listed[k].Length != 5+int32(k%3) || drawn[k].Length < 1 || drawn[k].Length > 300 {
			t.Fatalf("query %d has lengths %d, %d and %d", k, without[k].Length, listed[k].Length, drawn[k].Length)
		}
		sum += math.Log(float64(drawn[k].Length)) / float64(len(drawn))
		listed[k].Length, drawn[k].Length = 0, 0
		if !reflect.DeepEqual(listed[k], without[k]) || !reflect.DeepEqual(drawn[k], without[k]) {
			t.Fatalf("query %d differs in more than its length", k)
		}
	}
	if math.Abs(sum-4) > 0.3 {
		t.Errorf("logarithms of lengths have the mean %v, want 4 (seed 3)", sum)
	}
	s := Spec{MaxCount: 1, Apps: []AppSpec{{App: "a", Rate: 1, Lengths: ItemsSpec{Distribution: "file", File: "f"}}}}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "apps[0].lengths.file") {
		t.Errorf("%v", err)
	}
}
