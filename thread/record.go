package thread

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
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

// Names of what a thread has of decision records.
const (
	// decisionLog begins the name of the log of a record; the run's id follows.
	decisionLog = "decision/"
	// recordKind has a cell for each record, by run.
	recordKind = "record"
	// recordIndex has the records by the time of their last write, the newest first; runIndex by run.
	recordIndex = "record"
	runIndex    = "record-run"
	// noThread begins the names of the threads of runs that have none. It is no valid UTF-8, so that no conversation has such a name.
	noThread = "\xffrecord/"
)

// recordCell is what the cell of a record has.
type recordCell struct {
	// First is the line that began the record.
	First   json.RawMessage `json:"first"`
	Bytes   int64           `json:"bytes"`
	Written int64           `json:"written"` // in nanoseconds of Unix time
}

func (c *recordCell) cell(run string) (store.Cell, error) {
	value, err := json.Marshal(c)
	return store.Cell{Kind: recordKind, Key: run, Value: value, Index: []store.IndexKey{
		{Name: recordIndex, Key: store.Number(-c.Written)}, {Name: runIndex, Key: run},
	}}, err
}

// recordQuery selects the cell of a record.
func recordQuery(run string) store.Query {
	return store.Query{Cells: []store.Range{store.One(recordKind, run)}}
}

// recordOf decodes the cell of a record, if there is one.
func recordOf(s store.Snapshot, run string) (c recordCell, known bool, err error) {
	data, known := s.Cell(recordKind, run)
	if known {
		err = json.Unmarshal(data, &c)
	}
	return c, known, err
}

// threadOf returns the thread that keeps the record of a run.
func threadOf(id abi.RunIdentity) string { return keeperOf(id.ThreadID, id.RunID) }

func keeperOf(thread, run string) string {
	if thread == "" || len(thread) > store.MaxKey {
		return noThread + run
	}
	return thread
}

// maxRunID bounds the id of a run, in bytes. maxNamed is how many runs an error names.
const (
	maxRunID = 128
	maxNamed = 8
)

// CheckRun refuses the id of a run that cannot name a record.
func CheckRun(id string) error {
	good := id != "" && len(id) <= maxRunID
	for i := 0; good && i < len(id); i++ {
		c := id[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		good = letter || i > 0 && (c == '-' || c == '_' || c == '.')
	}
	if !good {
		return fmt.Errorf("run %.140q: the id cannot name a decision record; it must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}", id)
	}
	return nil
}

// named lists ids, the first ones of many.
func named(ids []string) string {
	text := strings.Join(ids[:min(len(ids), maxNamed)], ", ")
	if len(ids) > maxNamed {
		text += " and more"
	}
	return text
}
