package openinference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
)

// Parameters of streams of answers, as Triton names them.
const (
	wantsEmptyFinal = "triton_enable_empty_final_response"
	finalResponse   = "triton_final_response"
)

// Decoupled asks the server whether a variant's model gives any number of answers to a request. A server that has no
// model configurations has none.
func (b *Backend) Decoupled(ctx context.Context, v serving.VariantID) (bool, error) {
	m, err := b.model(v)
	if err != nil || m.sent != nil {
		return false, err
	}
	conn, client, err := b.dial()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	c, err := client.ModelConfig(ctx, &pb.ModelConfigRequest{Name: m.Name, Version: m.Version})
	return c.GetConfig().GetModelTransactionPolicy().GetDecoupled(), err
}

// runDecoupled asks a model that gives any number of answers, with one request for each query, and hands every answer
// on as it comes.
func (r *runner) runDecoupled(ctx context.Context, b *dataplane.Batch, m Model) error {
	ctx, stop := context.WithCancel(ctx) // ends the stream
	defer stop()
	stream, err := r.client.ModelStreamInfer(ctx)
	if err != nil {
		return r.failure(err)
	}
	for k := range b.Portions {
		ask := oip.EncodeRequest(m.Name, m.Version, strconv.Itoa(k), b.Portions[k].Inputs,
			map[string]*pb.InferParameter{wantsEmptyFinal: oip.Bool(true)})
		if err := stream.Send(ask); err != nil && !errors.Is(err, io.EOF) { // the reason comes with Recv
			return r.failure(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		return r.failure(err)
	}
	for left := len(b.Portions); left > 0; {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return r.wrong(m, errors.New("the stream ended before the last answer"))
		}
		if err != nil {
			return r.failure(err)
		}
		if text := answer.GetErrorMessage(); text != "" {
			return &dataplane.RemoteError{What: "the model server failed", Err: fmt.Errorf("openinference: %s: %s",
				r.b.c.Address, text)}
		}
		out := answer.GetInferResponse()
		k, err := strconv.Atoi(out.GetId())
		if err != nil || k < 0 || k >= len(b.Portions) {
			return r.wrong(m, fmt.Errorf("an answer has the id %.40q, which no request had", out.GetId()))
		}
		if len(out.GetOutputs()) > 0 && b.Portions[k].Partial != nil {
			outputs, err := oip.DecodeOutputs(out)
			if err != nil {
				return r.wrong(m, err)
			}
			if err := b.Portions[k].Partial(outputs); err != nil {
				return err
			}
		}
		if out.GetParameters()[finalResponse].GetBoolParam() {
			left--
		}
	}
	return nil
}

// wrong is the error for an answer that does not fit.
func (r *runner) wrong(m Model, err error) error {
	return &dataplane.RemoteError{
		What: "the model server gave a wrong answer", WrongAnswer: true,
		Err: fmt.Errorf("openinference: answer of %q on %s: %w", m.Name, r.b.c.Address, err),
	}
}
