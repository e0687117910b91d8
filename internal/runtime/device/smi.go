package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// EnvTool names another program than nvidia-smi, in a path that is not searched for instance.
const EnvTool = "SLUICE_NVIDIA_SMI"

// ErrNone is wrapped by errors that say that this machine has no driver, and so no accelerator that can be used.
var ErrNone = errors.New("no driver")

const (
	// askFor is how long the tool may take: the first call after a start may have to bring the driver up.
	askFor = 20 * time.Second
	// mostOutput is what is read of its answer, in bytes.
	mostOutput = 1 << 20
)

// Tool asks the driver.
type Tool struct {
	// Command is the program; empty means what SLUICE_NVIDIA_SMI names, else nvidia-smi.
	Command string
}

func (t Tool) name() string {
	if t.Command != "" {
		return t.Command
	}
	if named := os.Getenv(EnvTool); named != "" {
		return named
	}
	return "nvidia-smi"
}

// queries are the fields that are asked for, the first list that the driver knows. Drivers before 535 have the older
// name of the reasons, and very old ones have few of the others.
var queries = [][]string{
	append(baseFields, append(stateFields, "clocks_event_reasons.active")...),
	append(baseFields, append(stateFields, "clocks_throttle_reasons.active")...),
	baseFields,
}

var (
	baseFields  = []string{"index", "uuid", "name", "driver_version", "memory.total", "memory.used"}
	stateFields = []string{
		"compute_cap", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.draw", "power.limit", "temperature.gpu",
		"utilization.gpu",
	}
)

// Accelerators asks for all accelerators and what runs on them. The error wraps ErrNone where there is no driver.
func (t Tool) Accelerators(ctx context.Context) ([]Accelerator, error) {
	ctx, done := context.WithTimeout(ctx, askFor)
	defer done()
	var refused error
	for _, fields := range queries {
		out, err := t.ask(ctx, "--query-gpu="+strings.Join(fields, ","), "--format=csv,noheader,nounits")
		if errors.Is(err, ErrNone) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			refused = err
			continue
		}
		found, err := parseAccelerators(out, fields)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name(), err)
		}
		// Without the list of processes the rest is still worth having.
		if out, err := t.ask(ctx, "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
			"--format=csv,noheader,nounits"); err == nil {
			addProcesses(found, out)
		}
		return found, nil
	}
	return nil, refused
}

func (t Tool) ask(ctx context.Context, args ...string) (string, error) {
	path, err := exec.LookPath(t.name())
	if err != nil {
		return "", fmt.Errorf("%w: %s is not there; install it, or set %s to where it is", ErrNone, t.name(),
			EnvTool)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{w: &out}, &limited{w: &complaint}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("%s did not answer in %v", t.name(), askFor)
		}
		said := strings.TrimSpace(out.String() + complaint.String())
		return "", fmt.Errorf("%s: %w: %s", t.name(), err, firstLine(said))
	}
	return out.String(), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// limited drops what is beyond mostOutput.
type limited struct {
	w io.Writer
	n int
}

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), mostOutput-l.n)
	l.n += keep
	if _, err := l.w.Write(p[:keep]); err != nil {
		return 0, err
	}
	return len(p), nil
}
