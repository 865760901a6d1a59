package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/record"
)

// RecordConfig says whether and where the decisions of runs are kept, for mortise
// explain.
type RecordConfig struct {
	// Dir is the folder; runs in the user's state folder when empty.
	Dir string `yaml:"dir"`
	// Keep so many runs, 1000 when 0.
	Keep int `yaml:"keep"`
	// Disabled keeps nothing.
	Disabled bool `yaml:"disabled"`
}

func (c *RecordConfig) validate() error {
	if c.Keep < 0 {
		return fmt.Errorf("record.keep: is %d, must not be negative", c.Keep)
	}
	return nil
}

// recordDirEnv names the folder of records.
const recordDirEnv = "MORTISE_RECORD_DIR"

// recordDir is where records are: as the flag says, the environment, the config with its store or its
// folder, or by default. Chosen says that somebody asked for that.
func recordDir(flag string, cfg *Config) (dir string, chosen bool, err error) {
	if dir := cmp.Or(flag, os.Getenv(recordDirEnv)); dir != "" {
		return dir, true, nil
	}
	if cfg != nil && cfg.Store != "" {
		return cfg.path(cfg.Store), true, nil
	}
	if cfg != nil && cfg.Record.Dir != "" {
		return cfg.path(cfg.Record.Dir), true, nil
	}
	if dir, err = stateDir(); err != nil {
		return "", false, fmt.Errorf("records: there is no user state folder (%w); set record.dir or --record-dir", err)
	}
	return filepath.Join(dir, "mortise", "runs"), false, nil
}

// stateDir is the user's folder for what programs remember.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state"), err
}

// recorder keeps the decisions of the runs of a command. What cannot be written is
// told once, and the runs go on. It is safe for concurrent use; a nil one keeps nothing.
type recorder struct {
	store record.Store
	// place is where that is.
	place string
	warn  func(error)

	mu sync.Mutex
	// live finds the run under way of a thread.
	live   map[string]string
	failed error
}

// newRecorder opens the store, or the folder. A folder that nobody asked for, as in a container whose
// home cannot be written, is only warned about.
func newRecorder(ctx context.Context, o runOptions, cfg *Config, warn func(error)) (*recorder, error) {
	if o.noRecord || cfg.Record.Disabled {
		return nil, nil //nolint:nilnil // keeps nothing
	}
	out := &recorder{warn: warn, live: make(map[string]string)}
	keep := record.Config{Keep: cfg.Record.Keep, Source: sourceOf(o.session)}
	if cfg.home != nil {
		var err error
		out.place = cfg.home.name
		out.store, err = cfg.home.records(ctx, keep)
		return out, err
	}
	dir, chosen, err := recordDir(o.recordDir, cfg)
	if err == nil {
		out.place = dir
		out.store, err = record.Open(dir, keep)
	}
	switch {
	case err == nil:
		return out, nil
	case chosen:
		return nil, fmt.Errorf("config: %w; name another folder with record.dir or --record-dir, or use --no-record", err)
	default:
		warn(err)
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

// dir is where records go, or nothing.
func (r *recorder) dir() string {
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
func (r *recorder) decided(p *phases.Record, e record.Entry) {
	if r != nil {
		r.note(r.store.Add(p.Run.RunID, e))
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
		r.note(r.store.Start(record.Start{At: e.At, Run: identity}))
	case agent.EventRunFinish:
		r.enter(e.ThreadID, "")
		end := record.End{At: e.At, Steps: e.Step}
		if e.Outcome != nil {
			t := e.Outcome.Termination
			end.Type, end.Code, end.Detail, end.Steps = string(t.Type), t.Code, clip(t.Detail, 1024), e.Outcome.Steps
		}
		r.note(r.store.End(e.RunID, end))
	default: // the others decide nothing
	}
}

func (r *recorder) enter(thread, run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[thread] = run
}

// compaction keeps what was decided about a thread's compaction while it has a run.
func (r *recorder) compaction(e compaction.Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	run := r.live[e.Thread]
	r.mu.Unlock()
	r.note(r.store.Add(run, record.Entry{At: e.At, Compaction: &e}))
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	return r.store.Close()
}
