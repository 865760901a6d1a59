package background

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/dynamic"
)

// Class is what a task means to the run that owns it.
type Class string

// Classes.
const (
	// Blocking tasks are waited for: their run is not done before they are. It is
	// the default.
	Blocking Class = "blocking"
	// Detached tasks report, but no run waits for them.
	Detached Class = "detached"
	// Service tasks run until they are cancelled.
	Service Class = "service"
	// Housekeeping tasks are the runtime's own. Their notifications are marked so and
	// are never shown to a model.
	Housekeeping Class = "housekeeping"
)

// Status is where a task stands.
type Status string

// Statuses. All but queued and running are terminal.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Terminal reports whether a task with this status has ended.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Info is what is known of a task at one moment. It is also what is kept of it:
// one record, so that nothing (the name, the owner) is lost between two.
type Info struct {
	ID          string `json:"task_id"`
	Thread      string `json:"owner_thread_id"`
	Type        string `json:"task_type"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description"`
	Class       Class  `json:"class,omitempty"`
	Status      Status `json:"status"`
	Error       string `json:"error,omitempty"`
	Result      any    `json:"result,omitempty"`
	// CreatedAt and EndedAt are written as created_at_ms and completed_at_ms.
	CreatedAt time.Time `json:"-"`
	EndedAt   time.Time `json:"-"`
	// Owner is the process that runs the task.
	Owner string `json:"owner,omitempty"`
	// Parent is where the task comes from.
	Parent Lineage `json:"parent_context,omitzero"`
	// Attempt counts how often the body was started, from 1. It grows when a task
	// is resumed after a restart.
	Attempt int `json:"attempt,omitempty"`
}

// Bounds of the texts of a task, in bytes.
const (
	maxName        = 128
	maxType        = 64
	maxDescription = 4 << 10
)

// validate checks what a [Spec], or a record, has of a task.
func (i *Info) validate() error {
	switch {
	case i.Thread == "":
		return errors.New("background: Spec.Thread is missing")
	case i.Type == "":
		return errors.New("background: Spec.Type is missing")
	case !slices.Contains([]Class{Blocking, Detached, Service, Housekeeping}, i.Class):
		return fmt.Errorf("background: Spec.Class %.80q is unknown", i.Class)
	case slices.Contains([]string{"parent", "self", "all", "broadcast"}, i.Name):
		return fmt.Errorf("background: '%s' is a reserved name", i.Name)
	}
	for _, f := range []struct {
		name, value string
		limit       int
	}{{"Type", i.Type, maxType}, {"ID", i.ID, maxName}, {"Name", i.Name, maxName}, {"Description", i.Description, maxDescription}} {
		if len(f.value) > f.limit {
			return fmt.Errorf("background: Spec.%s has %d bytes, at most %d are allowed", f.name, len(f.value), f.limit)
		}
	}
	return nil
}

// record is what the ledger keeps of a task.
func (i *Info) record() ([]byte, error) { return json.Marshal(i) }

// fields is Info without its methods.
type fields Info

// wire is Info as JSON.
type wire struct {
	fields

	CreatedAtMS int64 `json:"created_at_ms"`
	EndedAtMS   int64 `json:"completed_at_ms,omitempty"`
}

// MarshalJSON writes times as milliseconds since 1970.
func (i Info) MarshalJSON() ([]byte, error) {
	w := wire{fields: fields(i), CreatedAtMS: i.CreatedAt.UnixMilli()}
	if !i.EndedAt.IsZero() {
		w.EndedAtMS = i.EndedAt.UnixMilli()
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. Whole numbers in the result are
// int64. A missing class is [Blocking].
func (i *Info) UnmarshalJSON(data []byte) error {
	w := wire{fields: fields{Class: Blocking, Status: Running}}
	if err := dynamic.Decode(data, &w); err != nil {
		return fmt.Errorf("background: record of a task: %w", err)
	}
	if w.ID == "" {
		return fmt.Errorf("background: record of a task has no task_id")
	}
	*i = Info(w.fields)
	i.Result = dynamic.Numbers(i.Result)
	i.CreatedAt = time.UnixMilli(w.CreatedAtMS)
	if w.EndedAtMS != 0 {
		i.EndedAt = time.UnixMilli(w.EndedAtMS)
	}
	return nil
}
