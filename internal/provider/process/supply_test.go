package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/provider"
)

// What the test binary is when it is started with this variable: a machine at the port that follows, or a supply that
// writes its machine's process identifier into the file that follows and waits.
const (
	asMachine = "SLUICE_TEST_AS_MACHINE"
	asSupply  = "SLUICE_TEST_AS_SUPPLY"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asMachine) != "":
		serve(os.Getenv(asMachine))
	case os.Getenv(asSupply) != "":
		supplyAndWait(os.Getenv(asSupply))
	}
	os.Exit(m.Run())
}

type ready struct {
	pb.UnimplementedGRPCInferenceServiceServer
}

func (ready) ServerReady(context.Context, *pb.ServerReadyRequest) (*pb.ServerReadyResponse, error) {
	return &pb.ServerReadyResponse{Ready: true}, nil
}

func serve(port string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s := grpc.NewServer()
	pb.RegisterGRPCInferenceServiceServer(s, ready{})
	fmt.Println(s.Serve(l))
	os.Exit(1)
}

func command(provider.Worker) []string {
	return []string{"/usr/bin/env", asSupply + "=", asMachine + "={port}", os.Args[0]}
}

var worker = provider.Worker{Name: "w"}

func supplyAndWait(file string) {
	s := New(Config{Command: command, Grace: time.Second})
	if _, err := s.Acquire(context.Background(), worker); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := os.WriteFile(file+".tmp", []byte(strconv.Itoa(s.PID(worker.Name))), 0o600); err != nil {
		os.Exit(1)
	}
	_ = os.Rename(file+".tmp", file)
	select {}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("after a minute it is not so that %s", what)
		}
	}
}

// runs reports whether a process is there and no zombie.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // a system without /proc
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestMachineComesIsLostAndGoes(t *testing.T) {
	s := New(Config{Command: command, Grace: time.Second})
	defer s.Close()
	events := make(chan provider.Event, 10)
	defer s.Watch(func(e provider.Event) { events <- e })()
	m, err := s.Acquire(t.Context(), worker)
	if err != nil || m.Started <= 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	if again, err := s.Acquire(t.Context(), worker); err != nil || again.Address != m.Address || again.Started != 0 {
		t.Errorf("acquired again it is %+v (%v), want the same", again, err)
	}
	eventually(t, "its process is known", func() bool { return s.PID(worker.Name) != 0 })
	if err := syscall.Kill(s.PID(worker.Name), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != provider.Lost || e.Worker != worker.Name {
		t.Errorf("after it was killed there is %+v", e)
	}
	if m, err = s.Acquire(t.Context(), worker); err != nil || m.Started <= 0 {
		t.Fatalf("another one: %+v, %v", m, err)
	}
	eventually(t, "its process is known", func() bool { return s.PID(worker.Name) != 0 })
	pid := s.PID(worker.Name)
	if err := s.Release(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if runs(pid) {
		t.Error("it runs after it was given back")
	}
	select {
	case e := <-events:
		t.Errorf("a machine that was given back made the event %+v", e)
	default:
	}
}

// A process that ends before it is ready is an error that shows what it said.
func TestMachineThatEndsEarly(t *testing.T) {
	s := New(Config{Command: func(provider.Worker) []string {
		return []string{"/bin/sh", "-c", "echo no model here, {worker}; exit 3", "{port}"}
	}})
	defer s.Close()
	if _, err := s.Acquire(t.Context(), worker); err == nil || !strings.Contains(err.Error(), "no model here, w") {
		t.Errorf("the error is %v", err)
	}
	missing := New(Config{Command: func(provider.Worker) []string { return []string{"there-is-no-such-program"} }})
	if _, err := missing.Acquire(t.Context(), worker); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}

// What is to be ended ends also where it does not want to, with what it started.
func TestMachineThatWillNotEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	stubborn := "trap '' TERM; sleep 1000 & echo $! > " + file + "; while :; do wait; done"
	p, err := start([]string{"/bin/sh", "-c", stubborn}, 100*time.Millisecond, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var child int
	eventually(t, "its child runs", func() bool {
		text, _ := os.ReadFile(file)
		child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return child > 0
	})
	p.end()
	<-p.done
	eventually(t, "nothing of it runs", func() bool { return !runs(child) })
}

// Machines end with the process that started them, also where that is killed.
func TestNothingSurvivesAKilledServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), asSupply+"="+file)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill() }()
	var pid int
	eventually(t, "its machine runs", func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(text))
		return pid > 0
	})
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	eventually(t, "the machine has ended", func() bool { return !runs(pid) })
}

// No port is given to two machines, however many are started before they listen.
func TestPortsOfMachinesDiffer(t *testing.T) {
	s := New(Config{Command: command})
	for k := range 1000 {
		port, err := s.port(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		address := "127.0.0.1:" + strconv.Itoa(port)
		for name, m := range s.running {
			if m.address == address {
				t.Fatalf("machines %s and %d have %s", name, k, address)
			}
		}
		s.running[strconv.Itoa(k)] = &machine{address: address}
	}
}
