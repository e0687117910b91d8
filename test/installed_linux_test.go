package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// inRoot names the root that this binary enters to run the program that is installed there.
const inRoot = "SLUICE_TEST_IN_ROOT"

// withDemo has the demonstration run there, too, which takes the time to measure its models.
const withDemo = "SLUICE_TEST_WITH_DEMO"

// release names the folder of a release. Its archive is tried then, instead of the layout of one.
const release = "SLUICE_RELEASE"

func init() {
	if root := os.Getenv(inRoot); root != "" {
		if err := enter(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// A program that was unpacked into a root which holds the C libraries and nothing else, with no variable set and no
// network, says which library it takes, makes a model, serves it and answers.
func TestInstalled(t *testing.T) {
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	bare(t, root)
	made := os.Getenv(release)
	if made != "" {
		unpacked(t, made, root)
	} else {
		needsONNX(t)
		laidOut(t, root)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(own)
	c.Env = []string{inRoot + "=" + root}
	wanted := []string{
		"(in lib/sluice beside the program's folder)", `"data":[11,22,33]`, "found=\"in lib/sluice",
	}
	if made != "" || longtest.Of(false, true) {
		c.Env = append(c.Env, withDemo+"=1")
		wanted = append(wanted, `"live": {`)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	said, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && made == "" {
		t.Skipf("this user may make no namespaces: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s", said)
	for _, want := range wanted {
		if !strings.Contains(string(said), want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

// bare copies the files of Debian's C and C++ libraries into a root, and makes the folder of temporary files.
func bare(t *testing.T, root string) {
	t.Helper()
	listed, err := exec.Command("dpkg", "-L", "libc6", "libgcc-s1", "libstdc++6").Output()
	if err != nil {
		t.Skipf("the packages of a bare root are not known here (dpkg): %v", err)
	}
	for path := range strings.Lines(string(listed)) {
		path = strings.TrimSpace(path)
		if strings.HasPrefix(path, "/usr/share/") || !strings.Contains(path, "lib") {
			continue
		}
		if err := copied(path, filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"/tmp", "/proc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o1777); err != nil {
			t.Fatal(err)
		}
	}
}

// copied copies a file or what a link leads to. Folders are made with what is in them.
func copied(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil // the listed place of a file may lie behind a link of another package
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// unpacked unpacks the archive for this machine into /opt of a root, after its sum was compared.
func unpacked(t *testing.T, made, root string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(made, "sluice-*-linux-"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s holds the archives %v, %v", made, found, err)
	}
	check := exec.Command("sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = made
	if said, err := check.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	to := filepath.Join(root, "opt", "sluice")
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	unpack := exec.Command("tar", "xzf", found[0], "--strip-components=1", "-C", to)
	if said, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	packaged(t, made, to)
	for _, name := range []string{"LICENSE", "licences/onnxruntime/LICENSE", "licences/go/LICENSE", "CHANGELOG.md"} {
		if _, err := os.Stat(filepath.Join(to, "share", "doc", "sluice", name)); err != nil {
			t.Error(err)
		}
	}
}

// packaged compares what the package for Debian installs below /usr with what the archive unpacked to.
func packaged(t *testing.T, made, unpacked string) {
	t.Helper()
	debs, err := filepath.Glob(filepath.Join(made, "sluice_*_"+runtime.GOARCH+".deb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, deb := range debs {
		to := t.TempDir()
		if said, err := exec.Command("dpkg-deb", "-x", deb, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		said, err := exec.Command("diff", "-r", filepath.Join(to, "usr"), unpacked).CombinedOutput()
		if err != nil {
			t.Errorf("%s is not what is in the archive: %v\n%s", deb, err, said)
		}
	}
}

// laidOut makes the layout of an archive in /opt of a root, with this binary as the program.
func laidOut(t *testing.T, root string) {
	t.Helper()
	library, err := native.ONNXRuntime()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(root, "opt", "sluice")
	if err := errors.Join(copied(own, filepath.Join(to, "bin", "sluice")),
		copied(library.Path, filepath.Join(to, "lib", "sluice", "libonnxruntime.so.1"))); err != nil {
		t.Fatal(err)
	}
}

// enter runs in namespaces of its own. It enters the root and runs the program's commands there.
func enter(root string) error {
	if err := loopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	// Mounts stay in this namespace.
	if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("proc",
		filepath.Join(root, "proc"), "proc", 0, ""), syscall.Chroot(root), os.Chdir("/tmp")); err != nil {
		return err
	}
	command := func(args ...string) *exec.Cmd {
		c := exec.Command("/opt/sluice/bin/sluice", args...)
		c.Env = []string{"PATH=", asProgram + "=1"} // the second is for the binary of the tests
		// There is no /dev/null to open.
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		return c
	}
	for _, args := range [][]string{{"version"}, {"example", "adder.onnx"}} {
		if err := command(args...).Run(); err != nil {
			return fmt.Errorf("%v: %w", args, err)
		}
	}
	if os.Getenv(withDemo) != "" {
		if err := command("demo", "--json", "--duration", "5s", "--dir", "/tmp/demo").Run(); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	server := command("serve", "adder.onnx")
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-ended:
			return fmt.Errorf("the server ended: %w", err)
		default:
		}
		if get("http://127.0.0.1:8000/v2/health/ready") == 200 {
			break
		}
		if time.Since(begun) > 2*time.Minute {
			return errors.New("the server is not ready after two minutes")
		}
	}
	infer := command("infer", "adder", "--url", "http://127.0.0.1:8000", "--input", "a=[[1,2,3]]", "--input",
		"b=[[10,20,30]]")
	if err := infer.Run(); err != nil {
		return fmt.Errorf("infer: %w", err)
	}
	if err := server.Process.Kill(); err != nil {
		return err
	}
	<-ended
	return nil
}

// loopback brings up the one device of a new network namespace.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ask, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ask.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ask)
}
