package record

import (
	"cmp"
	"errors"
	"fmt"
)

// Errors for errors.Is.
var (
	// ErrUnknown is a run that the store has no record of.
	ErrUnknown = errors.New("there is no record of it")
	// ErrAmbiguous is the beginning of more than one run's id.
	ErrAmbiguous = errors.New("it is the beginning of more than one id")
)

// Store keeps the records of runs. It is safe for concurrent use. Several handles, also of
// several processes, may have the same records open, and write to the same one. Each call
// bounds its own time, to seconds. What a call has kept survives the end of the process.
type Store interface {
	// Start begins the record of a run, or takes it up again when the run goes on, also one
	// that another handle began. It fails when the run's id is not one of [CheckRun].
	Start(s Start) error
	// Add adds an entry to the record of a run that this handle has started. An entry that
	// has no room any more is counted; one for another run is left out.
	Add(run string, e Entry) error
	// End ends the record of a run, for good or until it goes on. What is not started here
	// is left out.
	End(run string, e End) error
	// List returns the newest n runs, newest first: those that were written to last. What
	// cannot be read is left out.
	List(n int) ([]Known, error)
	// Load reads the record of a run. The id may be cut short as long as no other run's
	// begins in the same way. It fails with [ErrUnknown] or [ErrAmbiguous], and names runs
	// that there are.
	Load(id string) (*Run, error)
	// Close lets go of the handle, also of the records that it has started. Starting, listing
	// and loading fail after it. Closing again does nothing.
	Close() error
}

// Config says how much is kept, in whatever store.
type Config struct {
	// Keep so many records, the newest, 1000 when 0. Whoever opens a store removes the others.
	Keep int
	// RunBytes is about how large a record may grow, in bytes of JSON, 8 MiB when 0.
	RunBytes int64
	// Source is written into each record.
	Source string
}

// Checked is the config with its defaults, or says what is wrong with it.
func (c Config) Checked() (Config, error) {
	if c.Keep < 0 || c.RunBytes < 0 {
		return c, fmt.Errorf("record: Config.Keep %d and Config.RunBytes %d must not be negative", c.Keep, c.RunBytes)
	}
	c.Keep, c.RunBytes = cmp.Or(c.Keep, 1000), cmp.Or(c.RunBytes, 8<<20)
	return c, nil
}

// Known is a run that a store has a record of.
type Known struct {
	ID    string
	Start Start
}
