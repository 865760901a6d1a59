package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/thread"
)

// decisions writes decision records.
type decisions interface {
	mortise.Recorder
	Close(ctx context.Context) error
}

// recorder keeps the decisions of the runs of a command. The first failure is reported, and the runs continue. It is safe for concurrent
// use; a nil one keeps nothing.
type recorder struct {
	records decisions
	// home is the store of the records alone, nil if it is that of the command; place is its name.
	home  *program.Home
	place string
	warn  func(error)

	mu sync.Mutex
	// live finds the run under way of a thread.
	live   map[string]string
	failed error
}

// newRecorder opens the records of the command's store, or of one of their own. A default one that cannot be used, as in a container whose
// home folder cannot be written, is only warned about.
func newRecorder(ctx context.Context, o Options, cfg *program.Setup, logger *slog.Logger, warn func(error)) (*recorder, error) {
	if o.NoRecord || cfg.Record.Disabled {
		return nil, nil //nolint:nilnil // keeps nothing
	}
	out := &recorder{warn: warn, live: make(map[string]string)}
	keep := thread.RecordConfig{Keep: cfg.Record.Keep, Source: sourceOf(o.Session)}
	if cfg.Home != nil {
		var err error
		out.place = cfg.Home.Name
		out.records, err = thread.NewRecorder(ctx, cfg.Home.Store, keep)
		return out, err
	}
	name, chosen, err := config.RecordStore(o.RecordStore, cfg.Config)
	if err == nil && !chosen {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		out.home, err = cfg.Links.Open(ctx, name, logger, false)
	}
	if err == nil {
		out.place = out.home.Name
		out.records, err = thread.NewRecorder(ctx, out.home.Store, keep)
	}
	switch {
	case err == nil:
		return out, nil
	case chosen:
		err = fmt.Errorf("records: %w; name another file or URL with record.store or --record-store, or use --no-record", err)
		return nil, errors.Join(err, out.home.Close(ctx))
	default:
		warn(errors.Join(err, out.home.Close(ctx)))
		return nil, nil //nolint:nilnil // keeps nothing
	}
}

// sourceOf is how a record names what was run.
func sourceOf(session string) string {
	if path, err := filepath.Abs(session); err == nil && session != "-" {
		return path
	}
	return session
}

// name names where records go, or nothing.
func (r *recorder) name() string {
	if r == nil {
		return ""
	}
	return r.place
}

func (r *recorder) note(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	first := r.failed == nil
	if first {
		r.failed = err
	}
	r.mu.Unlock()
	if first {
		r.warn(err)
	}
}

// decided keeps what one hook call came to.
func (r *recorder) decided(p *phases.Record, e thread.Decision) {
	if r != nil {
		r.note(r.records.Add(p.Run.RunID, e))
	}
}

// event begins and ends records.
func (r *recorder) event(e agent.Event) {
	if r == nil {
		return
	}
	switch e.Type {
	case agent.EventRunStart:
		r.enter(e.ThreadID, e.RunID)
		identity := abi.RunIdentity{ThreadID: e.ThreadID, RunID: e.RunID}
		if e.Identity != nil {
			identity = *e.Identity
		}
		r.note(r.records.Start(thread.RunStart{At: e.At, Run: identity}))
	case agent.EventRunFinish:
		r.enter(e.ThreadID, "")
		end := thread.RunEnd{At: e.At, Steps: e.Step}
		if e.Outcome != nil {
			t := e.Outcome.Termination
			end.Type, end.Code, end.Detail, end.Steps = string(t.Type), t.Code, term.Clip(t.Detail, 1024), e.Outcome.Steps
		}
		r.note(r.records.End(e.RunID, end))
	default: // the others decide nothing
	}
}

func (r *recorder) enter(id, run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[id] = run
}

// compaction keeps what was decided about a thread's compaction while it has a run.
func (r *recorder) compaction(e compaction.Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	run := r.live[e.Thread]
	r.mu.Unlock()
	r.note(r.records.Add(run, thread.Decision{At: e.At, Compaction: &e}))
}

func (r *recorder) close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return errors.Join(r.records.Close(ctx), r.home.Close(ctx))
}
