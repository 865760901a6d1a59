package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds a line, maxBytes what is read of a file, in bytes.
const (
	maxLine  = 4 << 20
	maxBytes = 256 << 20
)

// maxNamed is how many runs an error names.
const maxNamed = 8

// Run is a record.
type Run struct {
	// Starts are the times at which the run began and went on; there is at least one.
	Starts  []Start `json:"starts"`
	Entries []Entry `json:"entries"`
	// Ends has one for each start, unless the process ended first.
	Ends []End `json:"ends,omitempty"`
	// Unreadable lines were left out.
	Unreadable int `json:"unreadable,omitempty"`
}

// ID is that of the run.
func (r *Run) ID() string { return r.Starts[0].Run.RunID }

// Known is a run that the folder has a record of.
type Known struct {
	ID    string
	Start Start
}

// List returns the newest n runs, newest first. Records that cannot be read are left
// out.
func (f *Folder) List(n int) ([]Known, error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	var out []Known
	for _, each := range files {
		if len(out) == n {
			break
		}
		if start, ok := f.first(each.run); ok {
			out = append(out, Known{ID: each.run, Start: start})
		}
	}
	return out, nil
}

// first reads the first line of a record.
func (f *Folder) first(run string) (Start, bool) {
	in, err := f.root.Open(run + suffix)
	if err != nil {
		return Start{}, false
	}
	defer in.Close()
	var l line
	err = json.NewDecoder(io.LimitReader(in, maxLine)).Decode(&l)
	if err != nil || l.Start == nil {
		return Start{}, false
	}
	return *l.Start, true
}

// Load reads the record of a run. The id may be cut short as long as no other run's
// begins in the same way.
func (f *Folder) Load(id string) (*Run, error) {
	run, err := f.find(id)
	if err != nil {
		return nil, err
	}
	in, err := f.root.Open(run + suffix)
	if err != nil {
		return nil, fmt.Errorf("record: run %s: %w", run, err)
	}
	defer in.Close()
	out, err := parse(io.LimitReader(in, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("record: run %s: %w", run, err)
	}
	return out, nil
}

// find returns the whole id.
func (f *Folder) find(id string) (string, error) {
	files, err := f.files()
	if err != nil {
		return "", err
	}
	var names, matches []string
	for _, each := range files {
		if each.run == id {
			return id, nil
		}
		names = append(names, each.run)
		if id != "" && strings.HasPrefix(each.run, id) {
			matches = append(matches, each.run)
		}
	}
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", fmt.Errorf("record: run %.140q: %w: %s; write more of it", id, ErrAmbiguous, named(matches))
	case len(names) == 0:
		return "", fmt.Errorf("record: run %.140q: %w, and there are none in %s", id, ErrUnknown, f.cfg.Dir)
	default:
		return "", fmt.Errorf("record: run %.140q: %w in %s; the newest are %s", id, ErrUnknown, f.cfg.Dir, named(names))
	}
}

func named(ids []string) string {
	text := strings.Join(ids[:min(len(ids), maxNamed)], ", ")
	if more := len(ids) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// parse reads a record. Lines that are not ours are counted.
func parse(in io.Reader) (*Run, error) {
	out := &Run{}
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(lines)
		if len(text) > 0 {
			out.take(text)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out.Starts) == 0 {
		return nil, fmt.Errorf("it is not a record of the format %s", Schema)
	}
	return out, nil
}

// take adds a line.
func (r *Run) take(text []byte) {
	var l line
	err := json.Unmarshal(text, &l)
	switch {
	case err != nil:
		r.Unreadable++
	case l.Start != nil && l.Start.Schema == Schema:
		r.Starts = append(r.Starts, *l.Start)
	case l.Entry != nil && len(r.Starts) > 0:
		r.Entries = append(r.Entries, *l.Entry)
	case l.End != nil && len(r.Starts) > 0:
		r.Ends = append(r.Ends, *l.End)
	default:
		r.Unreadable++
	}
}

// readLine returns a line without its end. One that is too long comes back as
// something that is no record.
func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	long := false
	for {
		part, more, err := in.ReadLine()
		if !long {
			out = append(out, part...)
		}
		if len(out) > maxLine {
			out, long = []byte("too long"), true
		}
		if err != nil || !more {
			return out, err
		}
	}
}
