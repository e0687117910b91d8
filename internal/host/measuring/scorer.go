package measuring

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/tensor"
)

// scoreTimeout is how long a command may take for one score.
const scoreTimeout = time.Minute

// scorer is a command of the user's that scores answers: it reads one on each line and writes a number for it.
type scorer struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	cancel  context.CancelFunc
}

func startScorer(ctx context.Context, command string) (*scorer, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &scorer{command: exec.CommandContext(ctx, "/bin/sh", "-c", command), cancel: cancel}
	s.command.Stderr = os.Stderr
	s.command.WaitDelay = time.Second
	in, err := s.command.StdinPipe()
	if err == nil {
		var out io.Reader
		if out, err = s.command.StdoutPipe(); err == nil {
			s.in, s.out = in, bufio.NewReader(out)
			err = s.command.Start()
		}
	}
	if err != nil {
		cancel()
		return nil, fault.Errorf(fault.Usage, "--score: %w", err)
	}
	return s, nil
}

// score has one answer scored.
func (s *scorer) score(of *samples.Sample, variant string, outputs []tensor.Tensor) (float64, error) {
	answer, _, err := oip.EncodeREST(&oip.RESTResponse{ModelName: variant, Outputs: outputs}, nil)
	if err != nil {
		return 0, fmt.Errorf("--score: %w", err)
	}
	head, err := json.Marshal(map[string]string{"file": of.File, "label": of.Label})
	if err != nil {
		return 0, err
	}
	line := append(append(head[:len(head)-1], ','), answer[1:]...)
	limit := time.AfterFunc(scoreTimeout, s.cancel)
	defer limit.Stop()
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return 0, fault.Errorf(fault.Usage, "--score: the command ends before it has read all answers: %w", err)
	}
	text, err := s.out.ReadSlice('\n')
	if err != nil {
		return 0, fault.Errorf(fault.Usage, "--score: %s: the command gives no score: %w", of.File, err)
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, fault.Errorf(fault.Usage, "--score: %s: the command says %.40q, want a number in [0, 1]", of.File,
			text)
	}
	return x, nil
}

func (s *scorer) close() error {
	_ = s.in.Close()
	limit := time.AfterFunc(scoreTimeout, s.cancel)
	defer limit.Stop()
	defer s.cancel()
	if err := s.command.Wait(); err != nil {
		return fault.Errorf(fault.Usage, "--score: %w", err)
	}
	return nil
}
