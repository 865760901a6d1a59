package natsstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// blob is bytes, here or elsewhere.
type blob struct {
	Data []byte `json:"d,omitempty"`
	Ref  *ref   `json:"r,omitempty"`
}

// The records of the mailbox, as they are written.
type (
	headFields struct {
		Thread        string
		Tenant        string `json:",omitzero"`
		Epoch         uint64 `json:",omitzero"`
		Fence         uint64 `json:",omitzero"`
		Seq           uint64 `json:",omitzero"`
		Queued        int    `json:",omitzero"`
		Messages      int    `json:",omitzero"`
		Claim         *mailbox.Claim
		Latest, Open  mailbox.RunRef `json:",omitzero"`
		Commit        string         `json:",omitzero"`
		Interrupt     string         `json:",omitzero"`
		ReservedUntil time.Time      `json:",omitzero"`
		DueAt         time.Time      `json:",omitzero"`
		Rank          int64          `json:",omitzero"`
		UpdatedAt     time.Time      `json:",omitzero"`
	}
	dispatchFields struct {
		ID          string
		Thread      string `json:",omitzero"`
		RunID       string `json:",omitzero"`
		Seq         uint64
		Priority    uint8
		Epoch       uint64 `json:",omitzero"`
		Dedupe      string `json:",omitzero"`
		Origin      string `json:",omitzero"`
		Status      mailbox.Status
		AvailableAt time.Time         `json:",omitzero"`
		Attempts    int               `json:",omitzero"`
		MaxAttempts int               `json:",omitzero"`
		LastError   string            `json:",omitzero"`
		Holding     bool              `json:",omitzero"`
		Token       string            `json:",omitzero"`
		Fence       uint64            `json:",omitzero"`
		Owner       string            `json:",omitzero"`
		End         mailbox.ClaimEnd  `json:",omitzero"`
		Instance    string            `json:",omitzero"`
		RunStatus   mailbox.RunStatus `json:",omitzero"`
		Termination string            `json:",omitzero"`
		Response    string            `json:",omitzero"`
		RunError    string            `json:",omitzero"`
		CreatedAt   time.Time         `json:",omitzero"`
		UpdatedAt   time.Time         `json:",omitzero"`
		CompletedAt time.Time         `json:",omitzero"`
		Request     []byte            `json:",omitempty"`
		Digest      string            `json:",omitzero"`
	}
	runFields struct {
		ID          string
		Thread      string `json:",omitzero"`
		Agent       string `json:",omitzero"`
		Parent      string `json:",omitzero"`
		Status      mailbox.RunStatus
		Termination string    `json:",omitzero"`
		Wait        string    `json:",omitzero"`
		WaitUntil   time.Time `json:",omitzero"`
		Output      string    `json:",omitzero"`
		Error       string    `json:",omitzero"`
		Dispatch    string    `json:",omitzero"`
		Session     string    `json:",omitzero"`
		Input       []string  `json:",omitempty"`
		Data        []byte    `json:",omitempty"`
		CreatedAt   time.Time `json:",omitzero"`
		StartedAt   time.Time `json:",omitzero"`
		FinishedAt  time.Time `json:",omitzero"`
		UpdatedAt   time.Time `json:",omitzero"`
	}
)

// birth makes an id taken, and has the dispatch or run as it first was.
type birth struct {
	Thread   string
	Home     uint64
	Dispatch *dispatchFields `json:",omitempty"`
	Run      *runFields      `json:",omitempty"`
	// Load and Pages are what the head carried, and pages, which are of other dispatches and runs.
	Load  *page           `json:"e,omitempty"`
	Pages map[uint64]page `json:"p,omitempty"`
}

// carrier is a birth of a dispatch, its host, that has what the head carried before it. The homes of that are from Low to Low+Span;
// that of the host is Low+Span+1+Gap.
type carrier struct {
	Host string `json:"i"`
	Low  uint64 `json:"l"`
	Span uint64 `json:"s,omitzero"`
	Gap  int64  `json:"g,omitzero"`
	// More is how many births carried it before, each a part.
	More int `json:"m,omitzero"`
}

// dispatchNow is a dispatch as it is, without its request. Home says which page it goes to.
// Request is set if it is not that of the birth.
type dispatchNow struct {
	Home    uint64 `json:"h"`
	Request *blob  `json:"q,omitempty"`
	// Birth is the number of its birth, if it is known.
	Birth  uint64 `json:"b,omitzero"`
	Fields dispatchFields
}

// runNow is a run as it is, without its data.
type runNow struct {
	Home   uint64 `json:"h"`
	Data   blob   `json:"d,omitzero"`
	Fields runFields
}

// entry is a queued dispatch in a head. First says that its run is as it was born. Birth and RunBirth are the
// numbers of the births of the two, if they are known.
type entry struct {
	ID        string `json:"i"`
	Run       string `json:"r"`
	Priority  uint8  `json:"p"`
	Seq       uint64 `json:"s"`
	Available int64  `json:"a,omitzero"`
	Dedupe    string `json:"k,omitzero"`
	Holding   bool   `json:"o,omitzero"`
	First     bool   `json:"f,omitzero"`
	Birth     uint64 `json:"b,omitzero"`
	RunBirth  uint64 `json:"n,omitzero"`

	// page is the page that it is in, zero for the head, and place where in it.
	page  uint64
	place int
}

// document is the record of a head. Each thread has one.
type document struct {
	// Format is the version of the record: 0 was before births had loads.
	Format int        `json:"v,omitzero"`
	Head   headFields `json:"h"`
	// Writes are the latest writes of it, by which a writer sees that it got through.
	Writes writes `json:"w"`
	// Queue is what no page of QueuePages has, in the order of turns. In memory waiting takes the place of both.
	Queue      []entry  `json:"q,omitempty"`
	QueuePages []queued `json:"z,omitempty"`
	// Dispatches and Runs have changed since they were last written elsewhere.
	Dispatches map[string]dispatchNow `json:"d,omitempty"`
	Runs       map[string]runNow      `json:"r,omitempty"`
	// Carriers have what changed before that, oldest first, and Pages the others that are not as they were born, by Home. Pages of
	// Hosts are in the birth of that dispatch.
	Carriers []carrier         `json:"y,omitempty"`
	Pages    map[uint64]ref    `json:"p,omitempty"`
	Hosts    map[uint64]string `json:"e,omitempty"`
	// LogPages have pageSize messages each, Tail the rest.
	LogPages []ref `json:"l,omitempty"`
	Tail     []ref `json:"t,omitempty"`
	Image    *blob `json:"m,omitempty"`
	// Counts are of all dispatches. Oldest is not after the last change of any terminal one.
	Counts map[mailbox.Status]int `json:"c,omitempty"`
	Oldest time.Time              `json:"o,omitzero"`
	// Cause is the dispatch of the latest signal.
	Cause string `json:"u,omitzero"`
	// Gone says that the thread was dropped.
	Gone bool `json:"g,omitzero"`

	waiting *waitlist
}

// format is the version of heads that this package writes. It reads all until then.
const format = 1

// read decodes a head, and refuses one that is too new.
func (d *document) read(data []byte) error {
	err := decode(data, d)
	if err != nil {
		var what struct {
			Format int `json:"v"`
		}
		if decode(data, &what) != nil {
			return err
		}
		d.Format = what.Format
	}
	if d.Format > format {
		return fmt.Errorf("natsstore: a thread is in format %d and this version reads up to %d: upgrade every process that shares the stream", d.Format, format)
	}
	return err
}

// writes are ids without spaces. They were a list in format 0, which no reader of that format takes for a string: it refuses what
// it would not understand.
type writes []string

func (w writes) add(o *object) { o.text("w", strings.Join(w, " ")) }

// UnmarshalJSON implements json.Unmarshaler.
func (w *writes) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*w = list
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	*w = strings.Fields(text)
	return nil
}

// message is an entry of a log.
type message struct {
	Seq  int
	ID   string
	Run  string    `json:",omitzero"`
	Data []byte    `json:",omitempty"`
	At   time.Time `json:",omitzero"`
}

func (d dispatchFields) record() mailbox.Dispatch { return mailbox.Dispatch(d) }

func (r runFields) record() mailbox.Run { return mailbox.Run(r) }

func (h headFields) record() mailbox.Head {
	if h.Claim != nil {
		c := *h.Claim
		h.Claim = &c
	}
	return mailbox.Head(h)
}

func encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("natsstore: encode: %w", err)
	}
	return data, nil
}

func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("natsstore: a record is damaged: %w", err)
	}
	return nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
