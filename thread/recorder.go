package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Lines of a record wait for others at most so long, and until there are so many bytes of them.
const (
	lineDelay = 200 * time.Millisecond
	lineBytes = 64 << 10
)

var errClosed = errors.New("the recorder is closed")

// RecordConfig bounds the decision records of a store.
type RecordConfig struct {
	// Keep is how many records stay, the newest, 1000 when 0. [NewRecorder] removes the others.
	Keep int
	// RunBytes is about how large a record may grow, in bytes of JSON, 8 MiB when 0.
	RunBytes int64
	// Source is written into each record.
	Source string
}

func (c RecordConfig) checked() (RecordConfig, error) {
	if c.Keep < 0 || c.RunBytes < 0 {
		return c, fmt.Errorf("thread: RecordConfig.Keep %d and RecordConfig.RunBytes %d must not be negative", c.Keep, c.RunBytes)
	}
	c.Keep, c.RunBytes = cmp.Or(c.Keep, 1000), cmp.Or(c.RunBytes, 8<<20)
	return c, nil
}

// Recorder writes the decision records of runs into their threads. The line that begins a run and the one that ends it are in the store when
// Start and End return, with all before them. Others follow in batches, 200 ms or 64 KiB late at most: those are lost when the process is
// killed. An error of writing them is returned by the next call for the run. Lines of a record that was deleted meanwhile, with its thread
// or because it was old, are dropped.
type Recorder struct {
	store store.Store
	cfg   RecordConfig

	mu     sync.Mutex
	open   map[string]*openRecord
	last   int64 // time of the last write
	closed bool
	timers sync.WaitGroup
}

// openRecord is a record that has not ended. Its fields but writing are guarded by Recorder.mu.
type openRecord struct {
	run, thread string
	// writing is held while a batch is written, so that batches keep their order.
	writing sync.Mutex
	// lines, of which there are count, are not written yet; size is that of the record with them.
	lines  []byte
	count  int
	size   int64
	timer  *time.Timer
	failed error
	// missing lines had no room, or were not written.
	missing int
}

// NewRecorder returns a recorder, after it has removed the oldest records of the store beyond RecordConfig.Keep. The caller closes it,
// before the store.
func NewRecorder(ctx context.Context, s store.Store, cfg RecordConfig) (*Recorder, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	if err := prune(ctx, s, cfg.Keep); err != nil {
		return nil, fmt.Errorf("thread: remove old decision records: %w", err)
	}
	return &Recorder{store: s, cfg: cfg, open: map[string]*openRecord{}}, nil
}

// Start begins the record of a run, or continues it, also one that another recorder began.
func (r *Recorder) Start(s RunStart) error {
	run := s.Run.RunID
	if err := CheckRun(run); err != nil {
		return err
	}
	s.Schema, s.Source = RecordSchema, r.cfg.Source
	line, err := Line{Start: &s}.encode()
	if err != nil {
		return wrapRun(run, err)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return wrapRun(run, errClosed)
	}
	o := r.open[run]
	if o == nil {
		o = &openRecord{run: run, thread: threadOf(s.Run)}
		r.open[run] = o
	}
	r.mu.Unlock()
	return wrapRun(run, errors.Join(r.flush(background(), o), r.write(o, line, true)))
}

// Add adds a decision to the record of a run that this recorder has started. One that has no room is counted; one of another run is left
// out.
func (r *Recorder) Add(run string, d Decision) error {
	line, err := Line{Entry: &d}.encode()
	if err != nil {
		return wrapRun(run, err)
	}
	r.mu.Lock()
	o := r.open[run]
	if o == nil {
		r.mu.Unlock()
		return nil
	}
	err, o.failed = o.failed, nil
	full := r.put(o, line)
	r.mu.Unlock()
	if full {
		err = errors.Join(err, r.flush(background(), o))
	}
	return wrapRun(run, err)
}

// put adds a line to those that wait, if there is room, and reports whether they are to be written now. The caller holds the lock.
func (r *Recorder) put(o *openRecord, line []byte) (full bool) {
	if r.closed || len(line) > MaxLine || o.size+int64(len(line)) > r.cfg.RunBytes {
		o.missing++
		return false
	}
	o.lines, o.count, o.size = append(o.lines, line...), o.count+1, o.size+int64(len(line))
	if len(o.lines) >= lineBytes {
		return true
	}
	if o.timer == nil {
		r.timers.Add(1)
		o.timer = time.AfterFunc(lineDelay, func() {
			defer r.timers.Done()
			if err := r.flush(background(), o); err != nil {
				r.mu.Lock()
				o.failed = err
				r.mu.Unlock()
			}
		})
	}
	return false
}

// End ends the record of a run, for good or until it continues. One that this recorder has not started is left out.
func (r *Recorder) End(run string, e RunEnd) error {
	r.mu.Lock()
	o := r.open[run]
	delete(r.open, run)
	r.mu.Unlock()
	if o == nil {
		return nil
	}
	failed := r.flush(background(), o)
	r.mu.Lock()
	e.Dropped = o.missing
	failed = errors.Join(o.failed, failed)
	r.mu.Unlock()
	line, err := Line{End: &e}.encode()
	if err == nil {
		err = r.write(o, line, false)
	}
	return wrapRun(run, errors.Join(failed, err))
}

// flush writes the lines that wait.
func (r *Recorder) flush(ctx context.Context, o *openRecord) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	r.mu.Lock()
	lines, count := o.lines, o.count
	o.lines, o.count = nil, 0
	if o.timer != nil && o.timer.Stop() {
		r.timers.Done()
	}
	o.timer = nil
	r.mu.Unlock()
	if count == 0 {
		return nil
	}
	return r.writeLocked(ctx, o, lines, count, r.cfg.RunBytes, nil)
}

// write writes a line that begins or ends a record.
func (r *Recorder) write(o *openRecord, line []byte, begins bool) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	var first []byte
	if begins {
		first = line
	}
	return r.writeLocked(background(), o, line, 1, r.cfg.RunBytes+EndRoom, first)
}

// writeLocked appends lines to a record if it is there and has room, and begins it with first if that is set. The caller holds o.writing.
func (r *Recorder) writeLocked(ctx context.Context, o *openRecord, lines []byte, count int, limit int64, first []byte) error {
	bound := callTime
	if len(lines) > lineBytes {
		bound = largeTime
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	var size int64
	kept := false
	_, err := store.Update(ctx, r.store, o.thread, recordQuery(o.run), func(s store.Snapshot) (*store.Batch, error) {
		c, known, err := recordOf(s, o.run)
		kept = err == nil && (known || first != nil) && c.Bytes+int64(len(lines)) <= limit
		if size = c.Bytes; !kept {
			return nil, err
		}
		if !known {
			c.First = first
		}
		c.Bytes += int64(len(lines))
		size, c.Written = c.Bytes, r.now(c.Written)
		cell, err := c.cell(o.run)
		return &store.Batch{Put: []store.Cell{cell}, Append: []store.Entry{{Log: decisionLog + o.run, Data: lines}}}, err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept && err == nil {
		o.size = size + int64(len(o.lines))
		return nil
	}
	o.missing += count
	if err == nil {
		o.size = size + int64(len(o.lines))
	}
	return err
}

// now returns the time of a write, which is after that of all writes before.
func (r *Recorder) now(before int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last+1, before+1, time.Now().UnixNano())
	return r.last
}

// Close writes the lines that wait. Start fails after it, Add and End do nothing. Closing again does nothing.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	open := r.open
	r.open, r.closed = nil, true
	r.mu.Unlock()
	var errs []error
	for run, o := range open {
		errs = append(errs, wrapRun(run, r.flush(ctx, o)))
	}
	r.timers.Wait()
	return errors.Join(errs...)
}

// wrapRun names the run of an error; nil stays nil.
func wrapRun(run string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("decision record of run %.140q: %w", run, err)
}
