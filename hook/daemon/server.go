package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/frame"
)

// ErrRunning means that another daemon serves the profile.
var ErrRunning = errors.New("daemon: another one serves this profile")

// Loaded is what a config comes to.
type Loaded struct {
	Program *hook.Program
	// Full keeps the events themselves in the record.
	Full bool
	// Close frees what was loaded, when no event uses it any more.
	Close func(context.Context) error

	// use is held for reading by events, and for writing by who closes.
	use sync.RWMutex
}

// end waits for the events that use what was loaded, and frees it.
func (l *Loaded) end(ctx context.Context) error {
	l.use.Lock()
	defer l.use.Unlock()
	if l.Close == nil {
		return nil
	}
	return l.Close(ctx)
}

// Config makes a [Server].
type Config struct {
	// Dir is the folder of the profile.
	Dir string
	// Load loads plugins. It is called at the start, in the background, and again when Changed returns another text.
	Load func(context.Context) (*Loaded, error)
	// Changed is a fingerprint of what Load reads. It is called at each event and must be quick.
	Changed func() string
	// Outdated reports whether a newer program is installed, to which the daemon makes room. Nil is never.
	Outdated func() bool
	// Policy makes the policy file for what was loaded, nil when loading failed.
	Policy func(*Loaded) *frame.Policy
	// Idle ends a daemon that had no event for so long, 30 min when 0. Drain bounds the wait for events under way, 10 s.
	Idle, Drain time.Duration
	Logger      *slog.Logger
}

// Bounds of a server.
const (
	defaultIdle  = 30 * time.Minute
	defaultDrain = 10 * time.Second
	maxConns     = 256
	lockTime     = 300 * time.Millisecond
	// helloTime is how long a client may take to send its event.
	helloTime = 10 * time.Second
	// margin is how much earlier than its client the daemon gives up.
	margin = 300 * time.Millisecond
	// maxDeadline bounds what a client may ask for.
	maxDeadline = 10 * time.Minute
)

// Server serves one profile.
type Server struct {
	cfg     Config
	socket  string
	lock    *os.File
	journal *journal
	states  *states
	tickets *hook.Tickets

	loading sync.Mutex
	ready   chan struct{} // closed when the first load has ended
	engine  atomic.Pointer[hook.Engine]
	loaded  atomic.Pointer[Loaded]
	print   atomic.Pointer[string] // fingerprint of what was loaded
	rules   atomic.Pointer[frame.Policy]

	conns  sync.WaitGroup
	slots  chan struct{}
	active atomic.Int64
	last   atomic.Int64 // event, Unix ns
	stop   context.CancelFunc
}

// New takes the lock of a profile, whose folder it makes if need be.
func New(cfg Config) (*Server, error) {
	cfg.Idle, cfg.Drain = cmp.Or(cfg.Idle, defaultIdle), cmp.Or(cfg.Drain, defaultDrain)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	socket, err := frame.SocketPath(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(cfg.Dir); err != nil {
		return nil, err
	}
	lock, err := takeLock(filepath.Join(cfg.Dir, frame.LockFile))
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, socket: socket, lock: lock, ready: make(chan struct{}), slots: make(chan struct{}, maxConns),
		journal: newJournal(cfg.Dir), states: &states{dir: filepath.Join(cfg.Dir, "sessions")},
		tickets: hook.NewTickets(filepath.Join(cfg.Dir, TicketFolder)), stop: func() {},
	}
	s.last.Store(time.Now().UnixNano())
	return s, nil
}

// takeLock waits a moment for a daemon that makes room.
func takeLock(path string) (*os.File, error) {
	for limit := time.Now().Add(lockTime); ; <-time.After(lockTime / 30) {
		lock, err := frame.Lock(path)
		if err != nil {
			return nil, fmt.Errorf("daemon: lock: %w", err)
		}
		if lock != nil {
			return lock, nil
		}
		if time.Now().After(limit) {
			return nil, fmt.Errorf("daemon: %s: %w", filepath.Dir(path), ErrRunning)
		}
	}
}

// Names in the folder of a profile.
const (
	RecordFile   = "record.jsonl"
	TicketFolder = "tickets"
)

// makeFolder makes a folder that only its user may enter.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	if err := frame.CheckFolder(dir); err != nil {
		return fmt.Errorf("daemon: %w; make it yours alone: chmod 700", err)
	}
	return nil
}

// Serve answers clients until ctx is done, or the daemon is not needed any more.
func (s *Server) Serve(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	l, err := s.listen()
	if err != nil {
		return errors.Join(err, s.lock.Close())
	}
	s.conns.Go(func() { s.load(ctx) })
	s.conns.Go(func() { s.watch(ctx) })
	stopped := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stopped()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				s.cfg.Logger.ErrorContext(ctx, "accept failed", "error", err)
			}
			break
		}
		s.slots <- struct{}{}
		s.active.Add(1)
		s.conns.Go(func() {
			defer func() { <-s.slots; s.active.Add(-1); s.last.Store(time.Now().UnixNano()) }()
			s.serve(context.WithoutCancel(ctx), c)
		})
	}
	s.stop()
	return s.drain(context.WithoutCancel(ctx))
}

// listen makes the socket. A socket that a killed daemon left is replaced: the lock
// keeps a running one from that.
func (s *Server) listen() (*net.UnixListener, error) {
	if err := os.Remove(s.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	if err := os.Chmod(s.socket, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("daemon: %w", err), l.Close())
	}
	if old, err := frame.ReadPolicy(s.cfg.Dir); err == nil {
		s.rules.Store(old)
	}
	return l, nil
}

func (s *Server) writePolicy(p *frame.Policy) error {
	s.rules.Store(p)
	return hook.WriteFile(filepath.Join(s.cfg.Dir, frame.PolicyFile), p.Marshal())
}

// watch ends a daemon that is idle.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(min(s.cfg.Idle/4+time.Millisecond, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.active.Load() == 0 && time.Since(time.Unix(0, s.last.Load())) >= s.cfg.Idle {
				s.stop()
				return
			}
		}
	}
}

// idle reports whether no event is under way any more.
func (s *Server) idle(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false // the process ends with it
	}
}

// drain waits for the events under way and frees what is loaded.
func (s *Server) drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.conns.Wait()
		close(done)
	}()
	timer := time.NewTimer(s.cfg.Drain)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.cfg.Logger.WarnContext(ctx, "events were still under way at the end")
	}
	var err error
	if l := s.loaded.Load(); l != nil && l.Close != nil && s.idle(done) {
		err = l.end(ctx)
	}
	return errors.Join(err, s.journal.close(), s.lock.Close())
}
