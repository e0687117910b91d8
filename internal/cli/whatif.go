package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/host/questions"
)

// whatIfName is the command with which a server has another process of this program answer a question.
const whatIfName = "what-if"

func whatIfCommand() command {
	return command{
		name: whatIfName, summary: "answer a question of the dashboard, JSON in and out (servers call it)",
		usage: "< QUESTION.json",
		about: `
Plans and simulates recorded arrivals, once as the configuration has it and once with a change, and says what keeps a
demand from being carried. A server calls it when somebody asks "what if" on its page, in processor time that nobody
else wants, so that the answer is never in the way of serving.`,
		examples: "sluice what-if < question.json",
		prepare: func(_ *flag.FlagSet) func(*Env, []string) error {
			return func(e *Env, _ []string) error {
				var q questions.WhatIf
				if err := json.NewDecoder(e.Stdin).Decode(&q); err != nil {
					return fault.Errorf(fault.Usage, "the question on standard input is no JSON: %v", err)
				}
				answer, err := q.Answer(e.Context, host.Options{}, planning.Advise)
				if err != nil {
					return err
				}
				return json.NewEncoder(e.Stdout).Encode(answer)
			}
		},
	}
}

// whatIfPriority is the environment variable that has answers take processor time as everything else does, if it is
// "normal": where a machine has none to spare, there would be no answer otherwise.
const whatIfPriority = "SLUICE_WHAT_IF_PRIORITY"

// whatIfMemory bounds the heap of the process that answers a question.
const whatIfMemory = "1GiB"

// answerInChild answers a question in a process of this program, with one thread of computation that yields to others.
func answerInChild(ctx context.Context, q *questions.WhatIf) (*questions.WhatIfAnswer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	question, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, program, whatIfName)
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOMEMLIMIT="+whatIfMemory)
	c.Stdin = bytes.NewReader(question)
	var out, trouble bytes.Buffer
	c.Stdout, c.Stderr = &out, &trouble
	start := startLowPriority
	if os.Getenv(whatIfPriority) == "normal" {
		start = (*exec.Cmd).Start
	}
	if err := start(c); err != nil {
		return nil, err
	}
	if err := c.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the answer took too long: ask about a shorter span, or set "+whatIfPriority+
				"=normal for the server where its machine has no time to spare: %w", ctx.Err())
		}
		text := strings.TrimPrefix(strings.TrimSpace(trouble.String()), "sluice "+whatIfName+": ")
		text, _, _ = strings.Cut(text, "\nRun 'sluice")
		kind := fault.Failed
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == ExitConfig ||
			ended != nil && ended.ExitCode() == ExitUsage {
			kind = fault.Usage
		}
		return nil, fault.Errorf(kind, "%s", text)
	}
	answer := &questions.WhatIfAnswer{}
	return answer, json.Unmarshal(out.Bytes(), answer)
}
