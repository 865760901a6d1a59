package thread

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Bounds of a line, in bytes: how long one may be, and what is kept free of RecordConfig.RunBytes for
// the lines that begin and end a record.
const (
	MaxLine = 4 << 20
	EndRoom = 16 << 10
)

// Errors for errors.Is.
var (
	// ErrNoRecord is a run without a decision record.
	ErrNoRecord = errors.New("there is no record of it")
	// ErrAmbiguous is the beginning of more than one run's id.
	ErrAmbiguous = errors.New("it is the beginning of more than one id")
)

// Line is a line of a decision record: one of its fields is set.
type Line struct {
	Start *RunStart `json:"start,omitempty"`
	Entry *Decision `json:"entry,omitempty"`
	End   *RunEnd   `json:"end,omitempty"`
}

// encode returns the line in JSON, with a newline at its end.
func (l Line) encode() ([]byte, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("decision record: %w", err)
	}
	return append(data, '\n'), nil
}

// Record is the decision record of a run.
type Record struct {
	// Starts has one for each time that the run began or continued; there is at least one.
	Starts  []RunStart `json:"starts"`
	Entries []Decision `json:"entries"`
	// Ends has one for each start, unless the process ended first.
	Ends []RunEnd `json:"ends,omitempty"`
	// Unreadable lines were left out.
	Unreadable int `json:"unreadable,omitempty"`
}

// ID returns the id of the run.
func (r *Record) ID() string { return r.Starts[0].Run.RunID }

// add adds the lines of an entry of the log. Lines that cannot be read are counted.
func (r *Record) add(lines []byte) {
	for line := range bytes.Lines(lines) {
		var l Line
		err := json.Unmarshal(line, &l)
		switch {
		case err != nil:
			r.Unreadable++
		case l.Start != nil && l.Start.Schema == RecordSchema:
			r.Starts = append(r.Starts, *l.Start)
		case l.Entry != nil && len(r.Starts) > 0:
			r.Entries = append(r.Entries, *l.Entry)
		case l.End != nil && len(r.Starts) > 0:
			r.Ends = append(r.Ends, *l.End)
		default:
			r.Unreadable++
		}
	}
}
