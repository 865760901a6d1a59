package record

import (
	"errors"
	"fmt"
	"os"
)

// file is a record that is being written.
type file struct {
	f       *os.File
	size    int64
	dropped int
}

// Start implements [Store].
func (f *Folder) Start(s Start) error {
	if err := CheckRun(s.Run.RunID); err != nil {
		return err
	}
	s.Schema, s.Source = Schema, f.cfg.Source
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.open[s.Run.RunID]
	if out == nil {
		w, err := f.root.OpenFile(s.Run.RunID+suffix, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("record: run %s: %w", s.Run.RunID, err)
		}
		out = &file{f: w}
		if info, err := w.Stat(); err == nil {
			out.size = info.Size()
		}
		if out.size > 0 { // Its last line may have been cut off.
			_, err = w.WriteString("\n")
		}
		if err != nil {
			return fmt.Errorf("record: run %s: %w", s.Run.RunID, errors.Join(err, w.Close()))
		}
		f.open[s.Run.RunID] = out
	}
	return out.write(Line{Start: &s}, f.cfg.RunBytes+EndRoom)
}

// Add implements [Store].
func (f *Folder) Add(run string, e Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.open[run]
	if out == nil {
		return nil
	}
	return out.write(Line{Entry: &e}, f.cfg.RunBytes)
}

// End implements [Store].
func (f *Folder) End(run string, e End) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.open[run]
	if out == nil {
		return nil
	}
	delete(f.open, run)
	e.Dropped = out.dropped
	err := out.write(Line{End: &e}, f.cfg.RunBytes+EndRoom)
	if closed := out.f.Close(); err == nil && closed != nil {
		err = fmt.Errorf("record: run %s: %w", run, closed)
	}
	return err
}

// write adds a line in one piece, so that processes do not write into each other's,
// unless the file would be larger than limit.
func (w *file) write(l Line, limit int64) error {
	data, err := l.Encode()
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if len(data) > MaxLine || w.size+int64(len(data)) > limit {
		w.dropped++
		return nil
	}
	n, err := w.f.Write(data)
	w.size += int64(n)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
