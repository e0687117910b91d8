package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sluice-serving/sluice/operator/internal/cluster/tied"
)

// StartTied starts a process that ends with this one, whatever ends it, in a process group of its own.
func StartTied(cmd *exec.Cmd) error { return tied.Start(cmd) }

// process is one of the programs of a control plane.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
	err  error         // how, once done
}

// start runs a program with its output in dir/NAME.log.
func start(dir, program string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(program), done: make(chan struct{})}
	p.log = filepath.Join(dir, p.name+".log")
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd = exec.CommandContext(context.Background(), program, args...) // stop ends it
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = out, out, dir
	if err := StartTied(p.cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop ends it, politely at first.
func (p *process) stop(patience time.Duration) {
	if p == nil {
		return
	}
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}

// signal sends a signal to the process and those that it started.
func (p *process) signal(s syscall.Signal) {
	// It is gone already where this fails.
	_ = syscall.Kill(-p.cmd.Process.Pid, s)
}

// PID is the process of one of the programs, by its name, such as kube-apiserver; 0 where it does not run.
func (c *Cluster) PID(program string) int {
	for _, p := range c.processes() {
		if p.name == program {
			return p.cmd.Process.Pid
		}
	}
	return 0
}

// tail returns the end of what it wrote.
func (p *process) tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	lines = lines[max(0, len(lines)-8):]
	for i, l := range lines {
		lines[i] = l[:min(len(l), 300)]
	}
	return string(bytes.Join(lines, []byte("\n")))
}
