package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// line is a line of a record: one of its fields is set.
type line struct {
	Start *Start `json:"start,omitempty"`
	Entry *Entry `json:"entry,omitempty"`
	End   *End   `json:"end,omitempty"`
}

// endRoom is kept free for the lines that begin and end a record.
const endRoom = 16 << 10

// file is a record that is being written.
type file struct {
	f       *os.File
	size    int64
	dropped int
}

// Start begins the record of a run, or takes it up again when the run goes on.
func (f *Folder) Start(s Start) error {
	if !validRun(s.Run.RunID) {
		return fmt.Errorf("record: run %.140q: the id cannot be the name of a file; it must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}", s.Run.RunID)
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
	return out.write(line{Start: &s}, f.cfg.FileBytes+endRoom)
}

// Add adds an entry to the record of a run that was started. An entry that has no
// room any more is counted; one for another run is left out.
func (f *Folder) Add(run string, e Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.open[run]
	if out == nil {
		return nil
	}
	return out.write(line{Entry: &e}, f.cfg.FileBytes)
}

// End ends the record of a run, for good or until it goes on.
func (f *Folder) End(run string, e End) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.open[run]
	if out == nil {
		return nil
	}
	delete(f.open, run)
	e.Dropped = out.dropped
	err := out.write(line{End: &e}, f.cfg.FileBytes+endRoom)
	if closed := out.f.Close(); err == nil && closed != nil {
		err = fmt.Errorf("record: run %s: %w", run, closed)
	}
	return err
}

// write adds a line in one piece, so that processes do not write into each other's,
// unless the file would be larger than limit.
func (w *file) write(l line, limit int64) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	data = append(data, '\n')
	if len(data) > maxLine || w.size+int64(len(data)) > limit {
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
