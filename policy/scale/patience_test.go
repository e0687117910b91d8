package scale

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// A forecast stays in force for longer while an app misses more of its queries than its objective allows, and for less
// again when it has not for some minutes.
func TestForecastOfAnAppThatMisses(t *testing.T) {
	spec := &serving.Spec{
		Apps:        []serving.App{{SLO: serving.SLO{Latency: time.Second, Percentile: 99}}},
		DeviceTypes: []serving.DeviceType{{Tenure: serving.Rented}},
	}
	rates := monitor.NewRates(1)
	v := &View{Spec: spec, Monitor: &rates.View}
	x := &Anticipate{}
	run := func(span time.Duration, perTenth, missed int) {
		for end := v.Now.Add(span); v.Now < end; {
			v.Now = v.Now.Add(100 * time.Millisecond)
			for k := range perTenth {
				rates.Add(v.Now, 0)
				if k < missed {
					rates.Miss(v.Now, 0)
				}
			}
			x.look(v)
		}
	}
	// stays is for how long the forecast stays near what it was when everything ends.
	stays := func() time.Duration {
		from, most := v.Now, x.now[0]
		for x.now[0] > most/2 && v.Now < from.Add(2*patientRelease) {
			run(time.Second, 1, 0)
		}
		return v.Now.Sub(from)
	}
	run(10*time.Second, 20, 0)
	if d := stays(); d < release/2 || d > 2*release {
		t.Errorf("without misses the forecast stays for %v, want about %v", d, release)
	}
	run(10*time.Second, 20, 2)
	if d := stays(); d < patientRelease*3/4 || d > patientRelease*3/2 {
		t.Errorf("with misses the forecast stays for %v, want about %v", d, patientRelease)
	}
	spec.DeviceTypes[0].Tenure = serving.Owned
	run(10*time.Second, 20, 2)
	if d := stays(); d < release/2 || d > 2*release {
		t.Errorf("on owned machines it stays for %v, want about %v", d, release)
	}
	spec.DeviceTypes[0].Tenure = serving.Rented
	run(30*time.Minute, 20, 0)
	if d := stays(); d < release/2 || d > 2*release {
		t.Errorf("half an hour later it stays for %v, want about %v", d, release)
	}
}
