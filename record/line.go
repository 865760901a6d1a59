package record

import (
	"encoding/json"
	"fmt"
)

// Bounds of a line, in bytes: how long one may be, and what is kept free of Config.RunBytes for
// the lines that begin and end a record.
const (
	MaxLine = 4 << 20
	EndRoom = 16 << 10
)

// Line is a line of a record as stores keep it, in JSON: one of its fields is set.
type Line struct {
	Start *Start `json:"start,omitempty"`
	Entry *Entry `json:"entry,omitempty"`
	End   *End   `json:"end,omitempty"`
}

// Encode is the line in JSON.
func (l Line) Encode() ([]byte, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return data, nil
}

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

// Take adds a line, in JSON, to a record that is being read. One that makes no sense is counted.
func (r *Run) Take(line []byte) {
	var l Line
	err := json.Unmarshal(line, &l)
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
