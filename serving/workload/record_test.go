package workload

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/serving"
)

func TestRecordRoundTrip(t *testing.T) {
	five, yes := int32(5), true
	records := []Record{
		{
			AtNS: 30, App: "b", Items: 4, Length: 300, Priority: 1, TimeoutNS: 9e6, MinAccuracy: 0.5, Pinned: "v2",
			Outcome: "refused", Error: "queue full\n",
		},
		{
			AtNS: 10, App: "a", Sample: &five, Outcome: "served", LatencyNS: 7, LagNS: 1, QueueNS: 2, Batch: 8,
			Variant: "v1", Accuracy: 0.9, Right: &yes,
		},
	}
	var b bytes.Buffer
	w, err := NewRecordWriter(&b, RecordHeader{Name: "live", Seed: 3, DurationNS: 5e9})
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Write(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := NewRecordReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); h.Name != "live" || h.Seed != 3 || h.DurationNS != 5e9 {
		t.Errorf("header %+v", h)
	}
	for i := range records {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, records[i]) {
			t.Errorf("record %d is %+v, want %+v", i, *got, records[i])
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
	arrivals, _, err := ReadArrivals(&b, byLetter, func(app serving.AppID, v string) (serving.VariantID, error) {
		return 7, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Arrival{
		{At: 10, App: 0, Items: 1, Variant: serving.None, Sample: 5},
		{
			At: 30, App: 1, Items: 4, Length: 300, Priority: 1, Timeout: 9 * time.Millisecond, MinAccuracy: 0.5,
			Variant: 7, Sample: -1,
		},
	}
	if !reflect.DeepEqual(arrivals, want) {
		t.Errorf("arrivals %+v, want %+v", arrivals, want)
	}
}

func TestRecordErrorsNameTheLine(t *testing.T) {
	const head = `{"format":"sluice-run/1"}` + "\n"
	for text, want := range map[string]string{
		"":                                  "empty",
		`{"format":"sluice-run/9"}`:         "sluice-run/9",
		head + `{"at_ns":-1}`:               "line 2",
		head + "\n\n{":                      "line 4",
		head + `{"at_ns":1,"app":"nobody"}`: "nobody",
		head + `{"at_ns":1,"app":"a","outcome":"won"}`:       "outcome",
		head + `{"at_ns":1,"app":"a","items":99999999}`:      "items",
		head + `{"at_ns":1,"app":"a","length":-1}`:           "length",
		head + `{"app":"` + strings.Repeat("x", 70000) + `"`: "line 2",
	} {
		_, _, err := ReadArrivals(strings.NewReader(text), byLetter, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want an error with %q", text, err, want)
		}
	}
}

func FuzzReadArrivals(f *testing.F) {
	const head = `{"format":"sluice-run/1"}` + "\n"
	f.Add(head + `{"at_ns":5,"app":"a","items":2,"sample":1}` + "\n" +
		`{"at_ns":1,"app":"b","outcome":"served","right":true}`)
	f.Add(head + `{"at_ns":9e18}`)
	f.Fuzz(func(t *testing.T, text string) {
		defer bounded.Watch(t, bounded.Fuzz(len(text)))()
		arrivals, _, err := ReadArrivals(strings.NewReader(text), func(string) (serving.AppID, error) {
			return 0, nil
		}, nil)
		if err != nil {
			return
		}
		for i, a := range arrivals {
			if a.Items < 1 || a.At < 0 || a.Timeout < 0 || a.Sample < -1 || i > 0 && a.At < arrivals[i-1].At {
				t.Fatalf("arrival %d is %+v", i, a)
			}
		}
	})
}
