package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/state"
)

// Program is what an [Engine] executes: plugins, and what the operator allows them.
type Program struct {
	// Runtime fires the phases. Its Config.Record must be Trace.Record.
	Runtime *phases.Runtime
	Trace   *Trace
	// Plugins are the descriptions of the runtime's plugins.
	Plugins []abi.Description
	// MayApprove names plugins whose "allow" skips the agent's own permission rules. By default none does.
	MayApprove []string
	// Quiet names plugins whose rewrites are not announced to the model.
	Quiet []string
	// WrapShell rewrites shell commands so that a failed one counts as a success of the tool, in dialects that let
	// no hook change the result of a failed call.
	WrapShell bool
	// RepairTokens bounds what is given back after a compaction of the agent's own, 650 when 0; negative is never.
	RepairTokens int
}

// Saved is what is kept of a lane.
type Saved struct {
	Values   map[string]any `json:"values"`
	Revision int64          `json:"revision"`
	RunID    string         `json:"run_id"`
	Step     int            `json:"step"`
	Stops    int            `json:"stops"`
	Ended    bool           `json:"ended"`
	Excluded []string       `json:"excluded"`
	Repair   Repair         `json:"repair"`
}

// States keeps lanes across restarts.
type States interface {
	// Load returns nil for a lane that was never saved.
	Load(lane string) (*Saved, error)
	// Save returns when another process would find the lane.
	Save(lane string, s *Saved) error
}

// Config makes an [Engine].
type Config struct {
	Program *Program
	// States keeps lanes, nil keeps them in memory.
	States States
	// Tickets keeps suspended calls. Nil denies them.
	Tickets *Tickets
	// Profile is the folder of the profile, which no file tool of the agent may change. Empty is none.
	Profile string
	// Record receives what became of each event. It must be quick. Nil discards.
	Record func(*Record)
	Logger *slog.Logger
	Now    func() time.Time
	NewID  func() string
}

// Engine handles events. Make one with [New]; it needs no closing.
type Engine struct {
	cfg     Config
	program atomic.Pointer[Program]
	once    once

	mu    sync.Mutex
	lanes map[string]*lane
}

// New makes an engine.
func New(cfg Config) (*Engine, error) {
	if cfg.Program == nil || cfg.Program.Runtime == nil || cfg.Program.Trace == nil {
		return nil, errors.New("hook: Config.Program needs a Runtime and a Trace")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if cfg.Record == nil {
		cfg.Record = func(*Record) {}
	}
	e := &Engine{cfg: cfg, lanes: map[string]*lane{}}
	e.once.init(cfg.Now)
	e.program.Store(cfg.Program)
	return e, nil
}

// Use replaces the program. Events under way end with the one before.
func (e *Engine) Use(p *Program) { e.program.Store(p) }

// Program returns the program in use.
func (e *Engine) Program() *Program { return e.program.Load() }

// Excluded are the tools that plugins excluded in a session, whose calls are denied.
func (e *Engine) Excluded(dialect, session string) []string {
	d, err := DialectOf(dialect)
	if err != nil {
		return nil
	}
	e.mu.Lock()
	l := e.lanes[laneKey(&Event{Dialect: d, Session: session})]
	e.mu.Unlock()
	if l == nil {
		return nil
	}
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return slices.Clone(l.saved.Excluded)
}

// Request is one call of a hook.
type Request struct {
	// Dialect and Event are those for which the hook is registered.
	Dialect, Event string
	// Headless means that no person is in front of the agent.
	Headless bool
	Stdin    []byte
}

// Handle handles one event and returns the standard output of the hook.
func (e *Engine) Handle(ctx context.Context, r *Request) (string, error) {
	d, err := DialectOf(r.Dialect)
	if err != nil {
		return "", err
	}
	ev, err := d.Decode(r.Event, r.Stdin)
	if err != nil {
		return "", err
	}
	key := onceKey(ev, r.Stdin)
	if key == "" {
		return e.handle(ctx, ev, r)
	}
	counts := onceFor
	switch ev.Spec.Kind {
	case EventEnd, EventCompact, EventCompacted, EventSession:
		counts = onceAgain
	default:
	}
	out, shared, err := e.once.do(ctx, key, counts, func() (string, bool, error) {
		out, err := e.handle(ctx, ev, r)
		return out, err == nil && !waits(out), err
	})
	if shared && err == nil {
		e.cfg.Record(&Record{
			At: e.cfg.Now(), Dialect: d.Name, Event: r.Event, Session: ev.Session, Lane: ev.Lane, Call: ev.CallID, Tool: ev.Tool, Duplicate: true,
		})
	}
	return out, err
}

// handle handles an event that is no duplicate.
func (e *Engine) handle(ctx context.Context, ev *Event, r *Request) (string, error) {
	l, err := e.enter(ctx, ev)
	if err != nil {
		return "", err
	}
	defer e.leave(l)
	h := &handling{engine: e, program: l.program, lane: l, event: ev, headless: r.Headless, ctx: ctx, at: e.cfg.Now()}
	h.record = &Record{At: h.at, Dialect: ev.Dialect.Name, Event: ev.Spec.Name, Session: ev.Session, Lane: ev.Lane, Call: ev.CallID, Tool: ev.Tool}
	l.program.Trace.begin(l.key, h.record)
	defer l.program.Trace.end(l.key)
	if err := h.fire(ctx); err != nil {
		return "", err
	}
	out, err := h.encode()
	if err != nil {
		return "", err
	}
	if err := e.save(l); err != nil {
		return "", err
	}
	h.record.finish(ev, &h.answer, e.cfg.Now())
	h.record.Raw = r.Stdin
	e.cfg.Record(h.record)
	return out, nil
}

// enter waits for the turn of a lane, in the order of arrival.
func (e *Engine) enter(ctx context.Context, ev *Event) (*lane, error) {
	key := laneKey(ev)
	e.mu.Lock()
	l := e.lanes[key]
	if l == nil {
		l = &lane{key: key, turn: make(chan struct{}, 1)}
		e.lanes[key] = l
	}
	l.users++
	e.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		e.drop(l)
		return nil, fmt.Errorf("hook: waiting for an earlier event of the session: %w", ctx.Err())
	}
	if err := e.prepare(l, ev); err != nil {
		e.leave(l)
		return nil, err
	}
	return l, nil
}

func (e *Engine) leave(l *lane) {
	<-l.turn
	e.drop(l)
}

// maxLanes are kept in memory. What is beyond is read from States again.
const maxLanes = 256

func (e *Engine) drop(l *lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.users--
	if e.cfg.States == nil || len(e.lanes) <= maxLanes && !l.closed {
		return
	}
	for key, o := range e.lanes {
		if o.users == 0 && (o.closed || len(e.lanes) > maxLanes) {
			delete(e.lanes, key)
		}
	}
}

// prepare gives a lane its state, and the program of now.
func (e *Engine) prepare(l *lane, ev *Event) error {
	p := e.program.Load()
	if l.st == nil {
		l.saved = Saved{}
		if e.cfg.States != nil {
			s, err := e.cfg.States.Load(l.key)
			if err != nil {
				return fmt.Errorf("hook: session state: %w", err)
			}
			if s != nil {
				l.saved = *s
			}
		}
		st, err := p.Runtime.Resume(state.Image{Revision: uint64(max(l.saved.Revision, 0)), Values: l.saved.Values}, false)
		if err != nil {
			return fmt.Errorf("hook: session state: %w", err)
		}
		l.st, l.program = st, p
	}
	if l.program != p {
		if err := p.Runtime.Adopt(l.st); err != nil {
			return fmt.Errorf("hook: the new plugins cannot take over the session: %w", err)
		}
		l.program = p
	}
	l.run = abi.RunIdentity{
		ThreadID: l.key, RunID: l.saved.RunID, AgentID: ev.Lane, SessionID: ev.Session, Adapter: "hook/" + ev.Dialect.Name,
	}
	if l.run.RunID == "" {
		l.newRun(e.cfg.NewID())
	}
	return nil
}

// save stores what changed, before the agent gets its answer.
func (e *Engine) save(l *lane) error {
	if e.cfg.States == nil || !l.changed() {
		return nil
	}
	img := l.st.Store().Export()
	l.saved.Values, l.saved.Revision = img.Values, int64(img.Revision) //nolint:gosec // a revision counts commits
	if err := e.cfg.States.Save(l.key, &l.saved); err != nil {
		return fmt.Errorf("hook: session state: %w", err)
	}
	l.written = l.mark()
	return nil
}
