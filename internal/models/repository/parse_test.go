package repository

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
)

const fullConfig = `# a comment
name: "digits"
platform: "onnxruntime_onnx"
max_batch_size: 16
input [
  { name: "image" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 1, 28, 28 ] reshape { shape: [ 784 ] } }
]
output <
  name: 'scores', data_type: TYPE_FP32; dims: 10
>
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  priority_levels: 2
  default_priority_level: 1
  default_queue_policy {
    timeout_action: DELAY default_timeout_microseconds: 5000 allow_timeout_override: true max_queue_size: 7
  }
  priority_queue_policy { key: 2 value { max_queue_size: 3 } }
}
instance_group [ { name: "a" count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]
version_policy: { specific { versions: [ 1, 3 ] } }
parameters { key: "k" value: { string_value: "a" "b" } }
model_warmup { name: "w" batch_size: 1 inputs { key: "image" value { data_type: TYPE_FP32 dims: [ 1, 28,
    28 ] zero_data: true } } }
backend: "onnxruntime"
`

func TestParseReadsTheFieldsWeKnow(t *testing.T) {
	c, unknown, err := Parse([]byte(fullConfig))
	if err != nil || len(unknown) != 0 {
		t.Fatalf("Parse: unknown %v, err %v", unknown, err)
	}
	if c.GetMaxBatchSize() != 16 || c.Input[0].Dims[2] != 28 || c.Input[0].Reshape.Shape[0] != 784 ||
		c.Output[0].Dims[0] != 10 {
		t.Errorf("tensors: %v", c)
	}
	d := c.DynamicBatching
	if d.MaxQueueDelayMicroseconds != 100 || d.DefaultQueuePolicy.TimeoutAction != pb.ModelQueuePolicy_DELAY ||
		d.PriorityQueuePolicy[2].MaxQueueSize != 3 {
		t.Errorf("dynamic_batching: %v", d)
	}
	if c.Parameters["k"].StringValue != "ab" || c.InstanceGroup[0].Gpus[1] != 1 ||
		c.GetVersionPolicy().GetSpecific().Versions[1] != 3 {
		t.Errorf("rest: %v", c)
	}
}

// A byte order mark, which some editors write, is no part of the text.
func TestParseWithAByteOrderMark(t *testing.T) {
	c, unknown, err := Parse([]byte("\ufeff" + fullConfig))
	if err != nil || len(unknown) != 0 || c.Platform == "" && c.Backend != "onnxruntime" {
		t.Errorf("%v, unknown %v, %v", c, unknown, err)
	}
	if _, _, err := Parse([]byte("max_batch_size: 1 \ufeff")); err == nil {
		t.Error("one within the text was passed over")
	}
}

func TestParseReportsEveryUnknownFieldWithItsLine(t *testing.T) {
	c, unknown, err := Parse([]byte(`name: "m"
optimization { graph { level: 1 } cuda { graphs: true } }
input [ { name: "a"
  strange: [ { x: "}" }, { x: '"' } ] data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "b" data_type: TYPE_FP32 dims: 2 other: -inf } ]
parameters { key: "p" value { string_value: "v" bytes_value: "w" } }
[some.extension]: 4
response_cache { enable: true } # trailing
max_batch_size: 3`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"optimization (line 2)", "input.strange (line 4)", "input.other (line 5)",
		"parameters.value.bytes_value (line 6)", "[some.extension] (line 7)", "response_cache (line 8)",
	}
	if !reflect.DeepEqual(unknown, want) {
		t.Errorf("unknown %q, want %q", unknown, want)
	}
	if c.Name != "m" || len(c.Input) != 2 || c.Input[1].Dims[0] != 2 || c.GetMaxBatchSize() != 3 ||
		c.Parameters["p"].StringValue != "v" {
		t.Errorf("known fields around unknown ones: %v", c)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"name: \"a":                            "line 1: a text does not end",
		"name: \"a\n\"":                        "line 1: a text does not end on its line",
		"input {\n name: \"x\"\n":              `line 3: '}' is missing at the end of the file`,
		"unknown {\n":                          `line 2: '}' is missing at the end of the file`,
		"unknown: [ 1, 2":                      "line 1: the list of unknown does not end",
		"name:":                                "line 1: name has no value",
		"\n}":                                  `line 2: '}' stands where a field name should`,
		"max_batch_size: \"4\"":                "(line 1:17): invalid value for int32 type: \"4\"",
		"max_batch_size: 99999999999":          "invalid value for int32",
		"name: \"a\"\nname: \"b\"":             "(line 2:1): non-repeated field \"name\" is repeated",
		"input { data_type: TYPE_FP31 }":       "invalid value for enum type: TYPE_FP31",
		strings.Repeat("a{", 100):              "nested more than 64 deep",
		"name: \"\xff\"":                       "not valid UTF-8",
		strings.Repeat(" ", MaxConfigBytes+1):  "more than the limit of 1048576",
		"version_policy { all {} latest { } }": "is already set",
	} {
		_, _, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.40q): error %v, want %q", text, err, want)
		}
	}
}

func TestUnknownFieldsAreCountedBeyondTheLimit(t *testing.T) {
	_, unknown, err := Parse([]byte(strings.Repeat("x: 1\n", maxUnknown+5)))
	if err != nil || len(unknown) != maxUnknown+1 || unknown[maxUnknown] != "and 5 more" {
		t.Errorf("%d unknown, last %q, err %v", len(unknown), unknown[len(unknown)-1], err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(fullConfig))
	f.Add([]byte(`a: [ { b: "c" 'd' }, < e: -1 > ]; [x.y] { } # z`))
	f.Add([]byte("name: \"m\"\nversion_policy: { latest { num_versions: 2 } }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(text)))()
		c, unknown, err := Parse(text)
		if err != nil {
			return
		}
		if len(unknown) > maxUnknown+1 {
			t.Errorf("%d unknown fields reported", len(unknown))
		}
		m := &Model{Name: c.Name, Config: c}
		if m.checkConfig() == nil {
			_, _ = chooseVersions([]int64{1, 2, 5}, c.VersionPolicy)
			m.MaxBatch = int(c.GetMaxBatchSize())
			m.configured()
		}
	})
}
