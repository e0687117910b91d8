package report

// Unit says how a metric is written and how two of its values are compared.
type Unit string

// The units of metrics. Fractions are shown in per cent and compared in points; all other values are compared
// relatively.
const (
	Count    Unit = "count"
	PerSec   Unit = "/s"
	Fraction Unit = "fraction"
	Millis   Unit = "ms"
	Plain    Unit = ""
	Dollars  Unit = "$"
)

// Metric is one number of a Summary.
type Metric struct {
	Name  string // JSON key, such as violation_ratio
	Label string // text in tables
	Unit  Unit
	Group int // tables separate groups by a line
	Value func(*Summary) *float64
}

// Metrics returns all metrics of a Summary in the order of tables. The slice must not be changed.
func Metrics() []Metric { return metrics }

func count(f func(*Summary) int64) func(*Summary) *float64 {
	return func(s *Summary) *float64 { return ptr(float64(f(s))) }
}

func number(f func(*Summary) float64) func(*Summary) *float64 {
	return func(s *Summary) *float64 { return ptr(f(s)) }
}

// ofServed returns a metric that has no value when nothing was served.
func ofServed(f func(*Summary) float64) func(*Summary) *float64 {
	return func(s *Summary) *float64 {
		if s.Served == 0 {
			return nil
		}
		return ptr(f(s))
	}
}

var metrics = []Metric{
	{"offered", "queries offered", Count, 0, count(func(s *Summary) int64 { return s.Offered })},
	{"served", "served", Count, 0, count(func(s *Summary) int64 { return s.Served })},
	{"late", "  of these late", Count, 0, count(func(s *Summary) int64 { return s.Late })},
	{"dropped", "dropped", Count, 0, count(func(s *Summary) int64 { return s.Dropped })},
	{"refused", "refused", Count, 0, count(func(s *Summary) int64 { return s.Refused })},
	{"failed", "failed", Count, 0, count(func(s *Summary) int64 { return s.Failed })},
	{"cancelled", "cancelled", Count, 0, count(func(s *Summary) int64 { return s.Cancelled })},

	{"offered_rate", "offered rate", PerSec, 1, number(func(s *Summary) float64 { return s.OfferedRate })},
	{"throughput", "throughput", PerSec, 1, number(func(s *Summary) float64 { return s.Throughput })},
	{"goodput", "goodput", PerSec, 1, number(func(s *Summary) float64 { return s.Goodput })},
	{"item_rate", "items", PerSec, 1, number(func(s *Summary) float64 { return s.ItemRate })},
	{"violation_ratio", "SLO violations", Fraction, 1, number(func(s *Summary) float64 { return s.ViolationRatio })},
	{"finish_rate", "finish rate", Fraction, 1, number(func(s *Summary) float64 { return s.FinishRate })},

	{"utility", "utility", Fraction, 1, func(s *Summary) *float64 { return s.Utility }},
	{"utility_bound", "  at most", Fraction, 1, func(s *Summary) *float64 { return s.UtilityBound }},
	{"utility_ratio", "  of the bound", Fraction, 1, func(s *Summary) *float64 { return s.UtilityRatio }},

	{"effective_accuracy", "effective accuracy", Fraction, 2, func(s *Summary) *float64 { return s.EffectiveAccuracy }},
	{"satisfied_accuracy", "accuracy per satisfied", Fraction, 2, func(s *Summary) *float64 {
		return s.SatisfiedAccuracy
	}},
	{"measured_accuracy", "measured accuracy", Fraction, 2, func(s *Summary) *float64 { return s.MeasuredAccuracy }},
	{"measured_query_accuracy", "queries wholly right", Fraction, 2, func(s *Summary) *float64 {
		return s.MeasuredQueryAccuracy
	}},
	{"normalised_accuracy", "normalised accuracy", Fraction, 2, func(s *Summary) *float64 {
		return s.NormalisedAccuracy
	}},
	{"max_accuracy_drop", "max accuracy drop", Fraction, 2, func(s *Summary) *float64 { return s.MaxAccuracyDrop }},
	{"normalised_accuracy_drop", "normalised max drop", Fraction, 2, func(s *Summary) *float64 {
		return s.NormalisedAccuracyDrop
	}},

	{"latency_mean_ms", "latency mean", Millis, 3, ofServed(func(s *Summary) float64 { return s.Latency.Mean })},
	{"latency_p50_ms", "latency p50", Millis, 3, ofServed(func(s *Summary) float64 { return s.Latency.P50 })},
	{"latency_p90_ms", "latency p90", Millis, 3, ofServed(func(s *Summary) float64 { return s.Latency.P90 })},
	{"latency_p95_ms", "latency p95", Millis, 3, ofServed(func(s *Summary) float64 { return s.Latency.P95 })},
	{"latency_p99_ms", "latency p99", Millis, 3, ofServed(func(s *Summary) float64 { return s.Latency.P99 })},
	{"latency_p999_ms", "latency p99.9", Millis, 3, ofServed(func(s *Summary) float64 { return s.Latency.P999 })},
	{"latency_max_ms", "latency max", Millis, 3, ofServed(func(s *Summary) float64 { return s.Latency.Max })},
	{"queue_p50_ms", "queue time p50", Millis, 3, ofServed(func(s *Summary) float64 { return s.Queue.P50 })},
	{"queue_p99_ms", "queue time p99", Millis, 3, ofServed(func(s *Summary) float64 { return s.Queue.P99 })},

	{"mean_batch", "mean batch size", Plain, 4, func(s *Summary) *float64 { return s.MeanBatch }},
	{"utilisation", "utilisation", Fraction, 4, func(s *Summary) *float64 { return s.Utilisation }},
	{"wasted_ratio", "  on missed queries", Fraction, 4, func(s *Summary) *float64 { return s.WastedRatio }},
	{"cost_per_hour", "cost per hour", Dollars, 4, func(s *Summary) *float64 { return s.CostPerHour }},
	{"cost_bound", "  at least", Dollars, 4, func(s *Summary) *float64 { return s.CostBound }},
	{"cost_per_million", "cost per million served", Dollars, 4, func(s *Summary) *float64 { return s.CostPerMillion }},
}
