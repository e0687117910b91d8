package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// RecordFormat is the field "format" in the first line of a recorded run: name and version of the layout.
const RecordFormat = "sluice-run/1"

// RecordHeader is the first line of a recorded run.
type RecordHeader struct {
	Format     string `json:"format"`
	Name       string `json:"name,omitempty"`
	Seed       uint64 `json:"seed,omitempty"`
	DurationNS int64  `json:"duration_ns,omitempty"` // span in which queries were offered
}

// Record is one query of a recorded run, a line of JSON. First come the fields that the client chose, then the result.
type Record struct {
	AtNS        int64   `json:"at_ns"` // scheduled instant since the start of the run
	App         string  `json:"app"`
	Items       int32   `json:"items,omitempty"`  // 0 means 1
	Length      int32   `json:"length,omitempty"` // 0 for one that is not known
	Priority    int32   `json:"priority,omitempty"`
	TimeoutNS   int64   `json:"timeout_ns,omitempty"` // 0 means the app's SLO
	MinAccuracy float64 `json:"min_accuracy,omitempty"`
	Pinned      string  `json:"pinned,omitempty"` // name of the variant that the client asked for
	Stream      uint64  `json:"stream,omitempty"` // number of its stream; 0 for none
	Sample      *int32  `json:"sample,omitempty"` // first labelled input; absent when there is none

	// served, dropped, refused, failed or cancelled; empty when not recorded
	Outcome   string  `json:"outcome,omitempty"`
	LatencyNS int64   `json:"latency_ns,omitempty"`
	LagNS     int64   `json:"lag_ns,omitempty"` // from the scheduled instant to the sending
	QueueNS   int64   `json:"queue_ns,omitempty"`
	InsideNS  int64   `json:"inside_ns,omitempty"` // time with the server, of the latency; 0 when it did not report it
	Batch     int32   `json:"batch,omitempty"`     // items of the batch that answered it
	Variant   string  `json:"variant,omitempty"`   // name of the variant that answered
	Accuracy  float64 `json:"accuracy,omitempty"`
	// Calibrated says that Accuracy is that of answers of the confidence that the query's first had.
	Calibrated bool  `json:"calibrated,omitempty"`
	Right      *bool `json:"right,omitempty"` // absent when the right answer is not known
	// RightItems of JudgedItems were answered rightly; absent for a query of one item.
	RightItems  int32  `json:"right_items,omitempty"`
	JudgedItems int32  `json:"judged_items,omitempty"`
	Error       string `json:"error,omitempty"`
	// Stages has the items that reached each stage of the app, by name. It is absent when the server did not report
	// them.
	Stages map[string]int32 `json:"stages,omitempty"`
	// Lengths has the length of the longest item at stages where the server reported it.
	Lengths map[string]int32 `json:"lengths,omitempty"`
}

// limits of a recorded run
const (
	maxRecordLine = 64 << 10
	// MaxRecords is the most queries of a recorded run.
	MaxRecords = 50_000_000
)

// RecordWriter writes a recorded run.
type RecordWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
}

// NewRecordWriter writes the header to w. The caller must call Flush at the end.
func NewRecordWriter(w io.Writer, h RecordHeader) (*RecordWriter, error) {
	h.Format = RecordFormat
	b := bufio.NewWriterSize(w, 64<<10)
	rw := &RecordWriter{w: b, enc: json.NewEncoder(b)}
	if err := rw.enc.Encode(h); err != nil {
		return nil, fmt.Errorf("record header: %w", err)
	}
	return rw, nil
}

// Write appends one query. Error texts are cut to 512 bytes. r is not changed.
func (w *RecordWriter) Write(r *Record) error {
	const most = 512
	if len(r.Error) > most {
		c := *r
		c.Error = r.Error[:most]
		r = &c
	}
	return w.enc.Encode(r)
}

// Flush writes buffered lines to the underlying writer.
func (w *RecordWriter) Flush() error { return w.w.Flush() }

// RecordReader reads a recorded run line by line.
type RecordReader struct {
	s      *bufio.Scanner
	line   int
	header RecordHeader
}

// NewRecordReader reads the header from r. It returns an error for another format or version.
func NewRecordReader(r io.Reader) (*RecordReader, error) {
	rr := &RecordReader{s: bufio.NewScanner(r)}
	rr.s.Buffer(make([]byte, 4096), maxRecordLine)
	if !rr.s.Scan() {
		if err := rr.s.Err(); err != nil {
			return nil, fmt.Errorf("recorded run: line 1: %w", err)
		}
		return nil, errors.New("recorded run: it is empty, want a header line")
	}
	rr.line = 1
	if err := json.Unmarshal(rr.s.Bytes(), &rr.header); err != nil {
		return nil, fmt.Errorf("recorded run: line 1: %w", err)
	}
	if rr.header.Format != RecordFormat {
		return nil, fmt.Errorf("recorded run: format is %q, want %q", rr.header.Format, RecordFormat)
	}
	if rr.header.DurationNS < 0 || rr.header.DurationNS > maxTime {
		return nil, fmt.Errorf("recorded run: duration_ns is %d, want a number in [0, %d]", rr.header.DurationNS,
			int64(maxTime))
	}
	return rr, nil
}

// Header returns the header.
func (r *RecordReader) Header() RecordHeader { return r.header }

// Next returns the next query, or io.EOF after the last. All numbers of a returned query are within the limits of a
// workload. Errors name the line.
func (r *RecordReader) Next() (*Record, error) {
	for r.s.Scan() {
		r.line++
		text := bytes.TrimSpace(r.s.Bytes())
		if len(text) == 0 {
			continue
		}
		rec := new(Record)
		err := json.Unmarshal(text, rec)
		if err == nil {
			err = rec.check()
		}
		if err != nil {
			return nil, fmt.Errorf("recorded run: line %d: %w", r.line, err)
		}
		return rec, nil
	}
	if err := r.s.Err(); err != nil {
		return nil, fmt.Errorf("recorded run: line %d: %w", r.line+1, err)
	}
	return nil, io.EOF
}

func (r *Record) check() error {
	switch {
	case r.AtNS < 0 || r.AtNS > maxTime:
		return fmt.Errorf("at_ns is %d, want a number in [0, %d]", r.AtNS, int64(maxTime))
	case r.Items < 0 || r.Items > MaxItems:
		return fmt.Errorf("items is %d, want a number in [0, %d]", r.Items, MaxItems)
	case r.Length < 0:
		return fmt.Errorf("length is %d, want at least 0", r.Length)
	case r.Priority < 0:
		return fmt.Errorf("priority is %d, want at least 0", r.Priority)
	case r.TimeoutNS < 0 || r.TimeoutNS > maxTime:
		return fmt.Errorf("timeout_ns is %d, want a number in [0, %d]", r.TimeoutNS, int64(maxTime))
	case !(r.MinAccuracy >= 0 && r.MinAccuracy <= 1):
		return fmt.Errorf("min_accuracy is %v, want a number in [0, 1]", r.MinAccuracy)
	case !(r.Accuracy >= 0 && r.Accuracy <= 1):
		return fmt.Errorf("accuracy is %v, want a number in [0, 1]", r.Accuracy)
	case r.Sample != nil && *r.Sample < 0:
		return fmt.Errorf("sample is %d, want at least 0", *r.Sample)
	case r.LatencyNS < 0 || r.LatencyNS > maxTime || r.QueueNS < 0 || r.QueueNS > maxTime || r.LagNS < 0 ||
		r.LagNS > maxTime || r.InsideNS < 0 || r.InsideNS > maxTime || r.Batch < 0:
		return errors.New("a latency, queue time, lag or batch size is out of bounds")
	}
	if r.Outcome != "" {
		if _, ok := serving.ParseOutcome(r.Outcome); !ok {
			return fmt.Errorf("outcome is %q, want served, dropped, refused, failed or cancelled", r.Outcome)
		}
	}
	return nil
}

// ReadArrivals reads the arrivals of a recorded run for a replay, sorted by time and then by app. resolve returns the
// id of an app by name. pinned returns the id of a pinned variant by name; nil ignores pins. Errors name the line.
func ReadArrivals(r io.Reader, resolve func(app string) (serving.AppID, error),
	pinned func(app serving.AppID, variant string) (serving.VariantID, error)) ([]Arrival, RecordHeader, error) {
	rr, err := NewRecordReader(r)
	if err != nil {
		return nil, RecordHeader{}, err
	}
	var out []Arrival
	known := map[string]serving.AppID{}
	for {
		rec, err := rr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, rr.header, err
		}
		if len(out) == MaxRecords {
			return nil, rr.header, fmt.Errorf("recorded run: line %d: more than %d queries; split the run", rr.line,
				MaxRecords)
		}
		id, ok := known[rec.App]
		if !ok {
			if id, err = resolve(rec.App); err != nil {
				return nil, rr.header, fmt.Errorf("recorded run: line %d: app %q: %w", rr.line, rec.App, err)
			}
			known[rec.App] = id
		}
		a := Arrival{
			At: serving.Time(rec.AtNS), App: id, Items: max(1, rec.Items), Length: rec.Length, Priority: rec.Priority,
			Timeout:     time.Duration(rec.TimeoutNS),
			MinAccuracy: rec.MinAccuracy, Variant: serving.None, Sample: -1, Stream: rec.Stream, Stages: rec.Stages,
			Lengths: rec.Lengths,
		}
		if rec.Sample != nil {
			a.Sample = *rec.Sample
		}
		if rec.Pinned != "" && pinned != nil {
			if a.Variant, err = pinned(id, rec.Pinned); err != nil {
				return nil, rr.header, fmt.Errorf("recorded run: line %d: variant %q: %w", rr.line, rec.Pinned, err)
			}
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Arrival) int {
		switch {
		case a.At != b.At && a.At < b.At, a.At == b.At && a.App < b.App:
			return -1
		case a.At == b.At && a.App == b.App:
			return 0
		}
		return 1
	})
	return out, rr.header, nil
}
