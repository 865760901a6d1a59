package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNone is a machine without PostgreSQL.
var ErrNone = errors.New("pgtest: no initdb and postgres in PATH or /usr/lib/postgresql (Debian: apt-get install postgresql)")

// startTime bounds how long a server may take to start, recovery included.
const startTime = 60 * time.Second

// Server is a private PostgreSQL.
type Server struct {
	dir      string
	bin      string
	password string
	settings []string
	// port is that on loopback, empty without one; cert and key are in PEM.
	port      string
	cert, key []byte
	done      chan struct{}
	process   *os.Process
}

// New makes and starts a server in a new temporary folder, with settings such as "fsync=off".
func New(ctx context.Context, settings ...string) (*Server, error) {
	return start(ctx, &Server{settings: settings})
}

func start(ctx context.Context, s *Server) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	s.dir, s.bin, s.password = dir, bin, rand.Text()
	if err := s.make(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// programs is the folder of initdb and postgres, the newest if there are several.
func programs() (string, error) {
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	slices.SortFunc(folders, func(a, b string) int { return major(b) - major(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append([]string{filepath.Dir(path)}, folders...)
	}
	for _, folder := range folders {
		_, noInit := os.Stat(filepath.Join(folder, "initdb"))
		_, noServer := os.Stat(filepath.Join(folder, "postgres"))
		if noInit == nil && noServer == nil {
			return folder, nil
		}
	}
	return "", ErrNone
}

func major(folder string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
	if err != nil {
		return 0
	}
	return n
}

// make makes the database cluster.
func (s *Server) make(ctx context.Context) error {
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(s.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	if err := give(s.dir, secret); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), //nolint:gosec // found by programs
		"--pgdata", s.data(), "--username", "mortise", "--pwfile", secret, "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	s.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w: %s", err, out)
	}
	return s.certify()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// prepare sets user, folder and environment of a command.
func (s *Server) prepare(cmd *exec.Cmd) {
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
	cmd.SysProcAttr = other()
}

// URL is the address to connect to, with the password.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("mortise", s.password), Path: "/postgres"}
	u.RawQuery = url.Values{"host": {s.dir}, "port": {s.socket()}}.Encode()
	return u.String()
}

// Password is that of the URL, for tests that look for it where it must not be.
func (s *Server) Password() string { return s.password }

// Start starts a server that was stopped or killed, and returns when it takes connections.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	again := s.process != nil
	for {
		if err := s.launch(ctx); err != nil {
			return err
		}
		err := s.ready(ctx)
		if err == nil || ctx.Err() != nil || !again {
			return err
		}
		// What is left of one that was killed may still hold the folder.
		if !wait(ctx, 100*time.Millisecond) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// launch starts the process. Its parent is a thread that stays until it ends, since it is killed
// with that thread.
func (s *Server) launch(ctx context.Context) error {
	out, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer out.Close()
	args := []string{"-D", s.data()}
	for _, setting := range append([]string{
		"listen_addresses=", "unix_socket_directories=" + s.dir, "port=" + s.socket(), "max_connections=200", "shared_buffers=64MB", "logging_collector=off",
	}, s.settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(s.bin, "postgres"), args...) //nolint:gosec // found by programs
	s.prepare(cmd)
	cmd.Stdout, cmd.Stderr = out, out
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		started <- cmd.Start()
		if cmd.Process != nil {
			_ = cmd.Wait() // it was asked to end, or killed
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("pgtest: postgres: %w", err)
	}
	s.process, s.done = cmd.Process, done
	return nil
}

// ready waits until the server says in its lock file that it is ready.
func (s *Server) ready(ctx context.Context) error {
	for {
		lines := strings.Split(string(read(filepath.Join(s.data(), "postmaster.pid"))), "\n")
		if len(lines) > 7 && lines[0] == strconv.Itoa(s.process.Pid) && strings.TrimSpace(lines[7]) == "ready" {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("pgtest: postgres ended: %s", read(s.log()))
		default:
		}
		if !wait(ctx, 10*time.Millisecond) {
			return fmt.Errorf("pgtest: postgres is not ready: %w: %s", context.Cause(ctx), read(s.log()))
		}
	}
}

func read(path string) []byte {
	data, err := os.ReadFile(path) //nolint:gosec // in our folder
	if err != nil {
		return nil
	}
	return data
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Kill ends the server as a crash does, and returns when it has ended.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Close stops the server and removes its folder.
func (s *Server) Close() error {
	var err error
	if s.process != nil {
		err = s.end(syscall.SIGQUIT)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) end(signal os.Signal) error {
	err := s.process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-s.done
	return err
}

// Pid is the process of the server.
func (s *Server) Pid() int { return s.process.Pid }
