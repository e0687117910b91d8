package python

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sluice-serving/sluice/tensor"
)

// Messages to a worker and its answers; see sluice_worker/channel.py.
type (
	placed struct {
		Name     string  `json:"name"`
		DataType string  `json:"datatype"`
		Shape    []int64 `json:"shape"`
		Offset   int     `json:"offset"`
		Size     int     `json:"size"`
	}
	described struct {
		Name     string  `json:"name"`
		DataType string  `json:"datatype"`
		Shape    []int64 `json:"shape"`
	}
	streamOf struct {
		ID     string  `json:"id"`
		Begins bool    `json:"begins"`
		Ends   bool    `json:"ends"`
		State  *[2]int `json:"state"`
	}
	ask struct {
		Op     string      `json:"op"`
		Model  string      `json:"model,omitempty"`
		Config *loadConfig `json:"config,omitempty"`
		Limit  int         `json:"limit,omitempty"`
		// Modules are to be imported by a spare process; of Frameworks a warm one lists the modules that it has.
		Modules    []string  `json:"modules,omitempty"`
		Frameworks []string  `json:"frameworks,omitempty"`
		Rows       int       `json:"rows,omitempty"`
		Inputs     []placed  `json:"inputs,omitempty"`
		Room       [2]int    `json:"room"`
		Stream     *streamOf `json:"stream,omitempty"`
	}
	loadConfig struct {
		Name    string            `json:"name"`
		Options map[string]string `json:"options"`
		Cores   int               `json:"cores"`
		Inputs  []described       `json:"inputs,omitempty"`
		Outputs []described       `json:"outputs,omitempty"`
	}
	answer struct {
		Error *struct {
			Kind string `json:"kind"`
			ID   string `json:"id"`
			Text string `json:"text"`
		} `json:"error"`
		// of a start
		PID int `json:"pid"`
		// of a warm-up
		Modules []string `json:"modules"`
		// of a load
		Inputs    []described `json:"inputs"`
		Batched   bool        `json:"batched"`
		MaxBatch  int         `json:"max_batch"`
		Streams   bool        `json:"streams"`
		EachQuery bool        `json:"each_query"`
		Sample    bool        `json:"sample"`
		// of a load as specs, of a run with places
		Outputs []placed `json:"outputs"`
		State   *[2]int  `json:"state"`
		Need    int      `json:"need"`
	}
)

func describedOf(specs []tensor.Spec) []described {
	out := make([]described, len(specs))
	for k, s := range specs {
		out[k] = described{s.Name, s.DType.String(), s.Shape}
	}
	return out
}

// send writes a message.
func send(w io.Writer, m *ask) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	head := make([]byte, 4, 4+len(body))
	binary.LittleEndian.PutUint32(head, uint32(len(body)))
	_, err = w.Write(append(head, body...))
	return err
}

// receive reads an answer.
func receive(r io.Reader, into *answer) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("an answer of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
