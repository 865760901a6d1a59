package thread

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
)

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
