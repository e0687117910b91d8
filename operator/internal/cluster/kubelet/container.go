package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/operator/internal/cluster/tied"
)

// imageFolder is where the programs of an image are.
const imageFolder = "/usr/local/bin"

// maxMessage bounds a termination message, as Kubernetes does.
const maxMessage = 4096

// container runs a container until it has ended, and returns its exit status and termination message.
func (p *pod) container(c *corev1.Container, initial bool) (code int, message string) {
	begun := metav1.Now()
	note := filepath.Join(p.folder, "message-"+c.Name)
	log := filepath.Join(p.k.Logs(), fmt.Sprintf("%s_%s_%s.log", p.spec.Namespace, p.spec.Name, c.Name))
	cmd, err := p.command(c, note)
	if err == nil {
		var out *os.File
		if out, err = os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
			defer out.Close()
			cmd.Stdout, cmd.Stderr = out, out
			err = tied.Start(cmd)
		}
	}
	if err != nil {
		message = err.Error()
		p.ended(c, begun, 128, message)
		return 128, message
	}
	p.mu.Lock()
	s := p.statuses[c.Name]
	s.LastTerminationState = corev1.ContainerState{Terminated: s.State.Terminated}
	if s.State.Terminated != nil {
		s.RestartCount++
	}
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begun}}
	p.statuses[c.Name] = s
	p.ready[c.Name] = !initial && c.ReadinessProbe == nil
	p.mu.Unlock()
	if !initial {
		p.report(corev1.PodRunning, "")
	}
	probing, stopProbing := context.WithCancel(p.ctx)
	if !initial && c.ReadinessProbe != nil {
		go p.probe(probing, c)
	}
	done := make(chan struct{})
	go p.terminate(cmd, c, done)
	err = cmd.Wait()
	close(done)
	stopProbing()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
		if code < 0 {
			code = 137
		}
	case err != nil:
		code = 128
	}
	if text, err := os.ReadFile(note); err == nil {
		message = string(text[:min(len(text), maxMessage)])
	}
	if message == "" && code != 0 && c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		if text, err := os.ReadFile(log); err == nil {
			lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
			message = string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
		}
	}
	p.ended(c, begun, code, message)
	return code, message
}

// ended notes how a container has ended.
func (p *pod) ended(c *corev1.Container, begun metav1.Time, code int, message string) {
	p.mu.Lock()
	s := p.statuses[c.Name]
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, Message: message, StartedAt: begun, FinishedAt: metav1.Now(),
	}}
	p.statuses[c.Name] = s
	p.ready[c.Name] = false
	p.mu.Unlock()
}

// terminate ends a container's process when its pod ends: first gracefully.
func (p *pod) terminate(cmd *exec.Cmd, c *corev1.Container, done <-chan struct{}) {
	signal := func(s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) } // it may be gone
	select {
	case <-done:
		return
	case <-p.ctx.Done():
		signal(syscall.SIGKILL)
		return
	case <-p.ending:
	}
	p.mu.Lock()
	grace := p.grace
	p.mu.Unlock()
	deadline := time.NewTimer(max(grace, time.Second))
	defer deadline.Stop()
	if l := c.Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Sleep != nil {
		select {
		case <-time.After(time.Duration(l.PreStop.Sleep.Seconds) * time.Second):
		case <-deadline.C:
			deadline.Reset(2 * time.Second) // what Kubernetes leaves after a hook that took all of the time
		case <-done:
			return
		case <-p.ctx.Done():
			signal(syscall.SIGKILL)
			return
		}
	}
	signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-deadline.C:
		signal(syscall.SIGKILL)
	case <-p.ctx.Done():
		signal(syscall.SIGKILL)
	}
}

// command is the process of a container: in the pod's network namespace, in a mount namespace with its volumes.
func (p *pod) command(c *corev1.Container, note string) (*exec.Cmd, error) {
	if len(c.Command) == 0 {
		return nil, fmt.Errorf("container %s names no program, and images are not known here", c.Name)
	}
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		return nil, err
	}
	env, err := p.environment(c)
	if err != nil {
		return nil, err
	}
	// A mount point has to be there, also on this machine; what is mounted is seen in the namespace alone.
	path := c.TerminationMessagePath
	if path == "" {
		path = corev1.TerminationMessagePathDefault
	}
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600); err == nil {
		f.Close()
	}
	binds := [][2]string{{p.k.c.Programs, imageFolder}, {note, path}}
	for _, m := range c.VolumeMounts {
		from := filepath.Join(p.folder, "volumes", m.Name, m.SubPath)
		if m.MountPath == "/tmp" {
			env = append(env, "TMPDIR="+from) // what tests need may lie below it, also where they have another TMPDIR
			continue
		}
		// A volume inside of another's mount point is bound after it.
		binds = append(binds, [2]string{from, m.MountPath})
	}
	var script strings.Builder
	script.WriteString("set -e\n")
	for _, b := range binds {
		fmt.Fprintf(&script, "mount --bind %s %s\n", quote(b[0]), quote(b[1]))
	}
	script.WriteString("exec \"$@\"\n")
	for _, b := range binds[2:] {
		if err := os.MkdirAll(b[1], 0o755); err != nil {
			return nil, err
		}
	}
	args := []string{"netns", "exec", p.netns, "sh", "-c", script.String(), "sh"}
	for _, a := range append(append([]string{}, c.Command...), c.Args...) {
		args = append(args, expand(a, env))
	}
	cmd := exec.CommandContext(context.Background(), "ip", args...)
	cmd.Env, cmd.Dir = env, "/"
	return cmd, nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// expand replaces $(NAME) by the environment's value.
func expand(s string, env []string) string {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		s = strings.ReplaceAll(s, "$("+name+")", value)
	}
	return s
}

// environment is what a container's process sees.
func (p *pod) environment(c *corev1.Container) ([]string, error) {
	env := append([]string{
		"PATH=" + imageFolder + ":/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/", "HOSTNAME=" + p.spec.Name,
		"KUBERNETES_SERVICE_HOST=" + p.k.Gateway().String(), "KUBERNETES_SERVICE_PORT=" + p.k.c.Port,
	}, p.k.c.Environment...)
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil {
			if e.ValueFrom.FieldRef == nil {
				return nil, fmt.Errorf("environment %s: only fields of the pod are known", e.Name)
			}
			var err error
			if value, err = p.field(e.ValueFrom.FieldRef.FieldPath); err != nil {
				return nil, fmt.Errorf("environment %s: %w", e.Name, err)
			}
		}
		env = append(env, e.Name+"="+expand(value, env))
	}
	return env, nil
}

// field is the value of one of the pod's fields.
func (p *pod) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return p.spec.Name, nil
	case "metadata.namespace":
		return p.spec.Namespace, nil
	case "metadata.uid":
		return string(p.uid), nil
	case "status.podIP":
		return p.address.String(), nil
	case "status.hostIP":
		return p.k.Gateway().String(), nil
	case "spec.nodeName":
		return p.node, nil
	case "spec.serviceAccountName":
		return p.spec.Spec.ServiceAccountName, nil
	}
	return "", fmt.Errorf("field %q is not known", path)
}
