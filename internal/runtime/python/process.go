package python

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a worker with the guardian that stands over it. One goroutine at a time talks to it.
type process struct {
	model    atomic.Pointer[string] // whose it is; a spare process is nobody's yet
	conn     net.Conn
	reader   *bufio.Reader
	memory   *memory
	lifeline *os.File // the guardian ends everything once it is closed
	guardian *os.Process
	pid      int // of the worker
	about    about

	cut  atomic.Bool   // it is being ended
	done chan struct{} // closed when the guardian has ended
	how  string        // it ended; read after done
	room int           // bytes that outputs took so far
}

// start starts an interpreter with an environment and waits until its worker answers.
func start(ctx context.Context, c *Config, interpreter, name string, environment []string) (*process, error) {
	folder, err := workerFolder(c.Folder)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	if err != nil {
		return nil, fmt.Errorf("python: %w", err)
	}
	p := &process{
		conn: conn, reader: bufio.NewReaderSize(conn, 64<<10), done: make(chan struct{}),
		room: firstRoom,
	}
	p.model.Store(&name)
	if p.memory, err = newMemory(2 * firstRoom); err != nil {
		_ = conn.Close()
		return nil, err
	}
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		_ = conn.Close()
		p.memory.close()
		return nil, fmt.Errorf("python: %w", err)
	}
	p.lifeline = lifeline
	defer func() { _ = lifelineEnd.Close() }()
	output, printed, err := os.Pipe()
	if err != nil {
		_ = conn.Close()
		_ = lifeline.Close()
		p.memory.close()
		return nil, fmt.Errorf("python: %w", err)
	}
	launcher := "import sys; sys.path[0] = " + strconv.Quote(folder) +
		"; from sluice_worker import guardian; guardian.main(3, 4, 5)"
	// It lives on after ctx, which bounds its start. Its name is for those who list processes.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), interpreter, "-c", launcher, name)
	cmd.Env = environment
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.ExtraFiles = []*os.File{lifelineEnd, theirs, p.memory.file} // 3, 4 and 5
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}           // a terminal's ctrl-C is for the server
	err = cmd.Start()
	_ = printed.Close()
	if err != nil {
		_ = output.Close()
		_ = conn.Close()
		_ = lifeline.Close()
		p.memory.close()
		return nil, fmt.Errorf("python: %s: %w", interpreter, err)
	}
	p.guardian = cmd.Process
	go p.wait(cmd, output, c.Log)
	ctx, stop := context.WithTimeout(ctx, startTimeout)
	defer stop()
	var hello answer
	if err := p.talk(ctx, nil, &hello); err != nil {
		p.discard()
		return nil, fmt.Errorf("python: %s does not start a worker (%s): %w", interpreter, p.how, err)
	}
	p.pid = hello.PID
	return p, nil
}

func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "server"), nil
}

// wait logs what the processes print, until the guardian has ended, and with it all of them.
func (p *process) wait(cmd *exec.Cmd, output *os.File, log func(model, line string)) {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		logLines(output, func(line string) { log(*p.model.Load(), line) })
	}()
	err := cmd.Wait()
	select {
	case <-logged:
	case <-time.After(time.Second): // somebody else has the pipe
	}
	_ = output.Close()
	<-logged
	p.how = ended(err)
	p.kill() // closes what is ours
	close(p.done)
}

// ended says how a worker has ended, by the status of its guardian.
func ended(err error) string {
	var status *exec.ExitError
	switch {
	case err == nil:
		return "it has ended"
	case !errors.As(err, &status) || status.ExitCode() < 0:
		return err.Error()
	case status.ExitCode() > 128:
		return fmt.Sprintf("ended by signal %d (%v)", status.ExitCode()-128, syscall.Signal(status.ExitCode()-128))
	}
	return fmt.Sprintf("ended with status %d", status.ExitCode())
}

// kill ends the processes at once, and does not wait for that.
func (p *process) kill() {
	if p.cut.Swap(true) {
		return
	}
	_ = p.lifeline.Close()
	_ = p.conn.Close()
	go func() {
		select {
		case <-p.done:
		case <-time.After(endTimeout):
			_ = p.guardian.Kill() // it is stopped, or worse; the kernel then ends the worker
		}
	}()
}

// end has the model unloaded, ends the processes, and waits for that.
func (p *process) end() {
	ctx, done := context.WithTimeout(context.Background(), endTimeout)
	defer done()
	var out answer
	_ = p.talk(ctx, &ask{Op: "unload"}, &out)
	p.kill()
	<-p.done
}

// discard ends the processes at once, waits for that, and unmaps the memory.
func (p *process) discard() {
	p.kill()
	<-p.done
	p.free()
}

// free unmaps the memory. Nothing may use it any more.
func (p *process) free() { p.memory.close() }

// dead reports whether it has ended.
func (p *process) dead() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// errTalk is wrapped by errors after which a process cannot be talked to.
var errTalk = errors.New("the process does not answer")

// talk sends a message, if there is one, and reads an answer. After an error the process must be killed.
func (p *process) talk(ctx context.Context, m *ask, into *answer) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(errTalk, err)
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = p.conn.SetDeadline(time.Unix(1, 0))
	})
	var err error
	if m != nil {
		err = send(p.conn, m)
	}
	if err == nil {
		err = receive(p.reader, into)
	}
	if !stop() {
		<-expired
		if err == nil { // the answer was there first: the next message has its own time
			err = p.conn.SetDeadline(time.Time{})
		}
	}
	if err != nil {
		return errors.Join(errTalk, ctx.Err(), err)
	}
	return nil
}
