package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// guardian runs a command in a process group of its own. Once its lifeline (descriptor 3) is closed, also because the
// process at the other end was killed, it asks the command to end and kills the group after a grace period, its first
// argument. It kills what is left of the group when the command has ended by itself, and prints the command's process
// identifier to descriptor 4.
const guardian = `
grace=$1
shift
"$@" 3<&- 4>&- &
child=$!
echo "$child" >&4
( read -r _ <&3
  kill -TERM "$child"
  sleep "$grace"
  kill -KILL 0 ) >/dev/null 2>&1 4>&- &
exec 3<&- 4>&-
wait "$child"
status=$?
echo "ended with status $status"
trap '' TERM
kill -TERM 0
kill -KILL 0
`

// Bounds on what a process prints.
const (
	maxLine   = 4 << 10 // bytes
	keptLines = 5
)

// process is a command with the guardian that stands over it.
type process struct {
	lifeline *os.File
	once     sync.Once
	done     chan struct{} // closed when nothing of it runs any more

	mu     sync.Mutex
	child  int
	lines  []string // the last ones that it printed
	status string
}

// start runs a command. log takes what it prints.
func start(args []string, grace time.Duration, log func(string)) (*process, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("the command of its machine cannot be run: %w", err)
	}
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = lifelineEnd.Close() }()
	pidOut, pidIn, err := os.Pipe()
	if err != nil {
		_ = lifeline.Close()
		return nil, err
	}
	defer func() { _ = pidIn.Close() }()
	output, printed, err := os.Pipe()
	if err != nil {
		_, _ = lifeline.Close(), pidOut.Close()
		return nil, err
	}
	seconds := strconv.FormatFloat(max(grace.Seconds(), 0.1), 'f', 1, 64)
	// It lives on after whoever asked for it has gone: end ends it.
	all := append([]string{"-c", guardian, "sh", seconds, path}, args[1:]...)
	cmd := exec.CommandContext(context.Background(), "/bin/sh", all...)
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.ExtraFiles = []*os.File{lifelineEnd, pidIn}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's ctrl-C is for the server
	err = cmd.Start()
	_ = printed.Close()
	if err != nil {
		_, _, _ = lifeline.Close(), pidOut.Close(), output.Close()
		return nil, fmt.Errorf("the command of its machine cannot be run: %w", err)
	}
	p := &process{lifeline: lifeline, done: make(chan struct{})}
	go p.readPID(pidOut)
	go p.wait(cmd, output, log)
	return p, nil
}

func (p *process) readPID(from *os.File) {
	defer func() { _ = from.Close() }()
	line, _ := bufio.NewReader(from).ReadString('\n')
	if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
		p.mu.Lock()
		p.child = pid
		p.mu.Unlock()
	}
}

// wait logs what the process prints until it has ended.
func (p *process) wait(cmd *exec.Cmd, output *os.File, log func(string)) {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		p.read(output, log)
	}()
	err := cmd.Wait()
	p.end() // the guardian's helper ends, too, where the guardian was killed
	select {
	case <-logged:
	case <-time.After(time.Second): // somebody else has the pipe
	}
	_ = output.Close()
	<-logged
	p.mu.Lock()
	if p.status == "" {
		p.status = "its guardian ended"
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			p.status = exit.String()
		}
	}
	p.mu.Unlock()
	close(p.done)
}

// read passes on lines, cut where they are long.
func (p *process) read(from io.Reader, log func(string)) {
	in := bufio.NewReaderSize(from, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if text := strings.TrimRight(string(line), "\r\n"); text != "" {
			p.mu.Lock()
			if s, ok := strings.CutPrefix(text, "ended with status "); ok {
				p.status = "status " + s
			} else if p.lines = append(p.lines, text); len(p.lines) > keptLines {
				p.lines = p.lines[1:]
			}
			p.mu.Unlock()
			log(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// end asks the process to end, and has it killed after its grace. done says when it has.
func (p *process) end() { p.once.Do(func() { _ = p.lifeline.Close() }) }

// how says how it ended; read after done.
func (p *process) how() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

func (p *process) lastLines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, " | ")
}

func (p *process) childPID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}
