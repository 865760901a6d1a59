package daemon

import (
	"encoding/json"
	"os"
	"sync"

	"github.com/mortise-dev/mortise/hook"
)

// maxJournal is the size at which the record is moved aside; one older file is kept, and of those before the totals.
const maxJournal = 8 << 20

// totalsFile is the sum of what the record had earlier.
const totalsFile = "totals.json"

// journal appends records to a file that only its owner may read, one line each.
type journal struct {
	dir string
	max int64

	mu   sync.Mutex
	file *os.File
	size int64
}

func newJournal(dir string) *journal { return &journal{dir: dir, max: maxJournal} }

// line is a record with the event itself, if that is kept.
type line struct {
	*hook.Record

	Full json.RawMessage `json:"full,omitempty"`
}

// add adds a record. What cannot be written is lost: the agent does not wait for it.
func (j *journal) add(r *hook.Record, full bool) {
	l := line{Record: r}
	if full && json.Valid(r.Raw) {
		l.Full = r.Raw
	}
	data, err := json.Marshal(l)
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		if j.file, err = os.OpenFile(aside(j.dir, 0), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return
		}
		if info, err := j.file.Stat(); err == nil {
			j.size = info.Size()
		}
	}
	n, _ := j.file.Write(append(data, '\n'))
	if j.size += int64(n); j.size > j.max {
		_ = j.file.Close()
		j.file = nil
		_ = rotate(j.dir) // else at the next record
	}
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
