package record

import (
	"errors"
	"fmt"
	"sync"
)

// Put is a line for the end of a record.
type Put struct {
	Run  string
	Data []byte
	// Limit is how many bytes the record may have with it.
	Limit int64
	// First says that the record is begun by it, if it is not there; other lines begin none.
	First bool
	// Last says that the run has ended: the line has to be on the disk then, and others need not.
	Last bool
}

// Keeper is the writing half of a [Store] whose engine puts a line in a transaction: it knows which runs
// were started here, and counts what had no room. It is safe for concurrent use.
type Keeper struct {
	name string
	cfg  Config
	put  func(Put) (kept bool, err error)

	mu     sync.Mutex
	closed bool
	// started has the runs that have not ended, with how many entries had no room.
	started map[string]int
}

// NewKeeper makes one for a config that was checked. Errors begin with the name; put says whether there was room for a line, or
// whether its record was not there, and must be safe for concurrent use.
func NewKeeper(name string, cfg Config, put func(Put) (kept bool, err error)) *Keeper {
	return &Keeper{name: name, cfg: cfg, put: put, started: make(map[string]int)}
}

// Start implements [Store].
func (k *Keeper) Start(s Start) error {
	run := s.Run.RunID
	if err := CheckRun(run); err != nil {
		return err
	}
	s.Schema, s.Source = Schema, k.cfg.Source
	kept, err := k.line(run, Line{Start: &s}, Put{Limit: k.cfg.RunBytes + EndRoom, First: true})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return k.Wrap(run, errClosed)
	}
	k.started[run] += dropped(kept)
	return nil
}

// Add implements [Store].
func (k *Keeper) Add(run string, e Entry) error {
	k.mu.Lock()
	_, started := k.started[run]
	k.mu.Unlock()
	if !started {
		return nil
	}
	kept, err := k.line(run, Line{Entry: &e}, Put{Limit: k.cfg.RunBytes})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, started := k.started[run]; started {
		k.started[run] += dropped(kept)
	}
	return nil
}

// End implements [Store].
func (k *Keeper) End(run string, e End) error {
	k.mu.Lock()
	missing, started := k.started[run]
	delete(k.started, run)
	k.mu.Unlock()
	if !started {
		return nil
	}
	e.Dropped = missing
	_, err := k.line(run, Line{End: &e}, Put{Limit: k.cfg.RunBytes + EndRoom, Last: true})
	return err
}

// line puts a line, unless it is too long to be read again.
func (k *Keeper) line(run string, l Line, p Put) (kept bool, err error) {
	if p.Data, err = l.Encode(); err != nil || len(p.Data) > MaxLine {
		return false, err
	}
	p.Run = run
	kept, err = k.put(p)
	return kept, k.Wrap(run, err)
}

// dropped counts what was not kept.
func dropped(kept bool) int {
	if kept {
		return 0
	}
	return 1
}

// Close implements [Store]. What is below stays open.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	clear(k.started)
	return nil
}

// Open fails when the store was closed.
func (k *Keeper) Open() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errClosed
	}
	return nil
}

var errClosed = errors.New("the store is closed")

// Wrap says which run an error is about; nil stays nil.
func (k *Keeper) Wrap(run string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: run %.140q: %w", k.name, run, err)
}
