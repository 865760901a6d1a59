package mailbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// Kinds of cells of a thread. Keys are ids, unless a comment follows. Messages are entries of the log of that kind; cells of it,
// by place, hold those that were replaced.
const (
	kindThread   = "thread" // the thread record; without a key
	kindDispatch = "dispatch"
	kindRequest  = "request"
	kindRun      = "run"
	kindRunData  = "rundata"
	kindQueue    = "queue"  // what is queued, by place
	kindDedupe   = "dedupe" // the dispatch that has a key, by key
	kindImage    = "image"  // without a key
	kindMessage  = threads.MessageKind
	kindDamaged  = "damaged" // when a damaged thread was noticed; without a key
)

// Indexes of cells. Groups and keys are in parentheses.
const (
	indexThread   = "thread"   // threads (, thread)
	indexTenant   = "tenant"   // threads (tenant, thread)
	indexWait     = "wait"     // threads (reason, thread)
	indexChild    = "child"    // threads (thread above, thread)
	indexReady    = "ready"    // threads that were due when they were written (, rank and thread)
	indexLater    = "later"    // other threads that will be due (, time and thread)
	indexClaim    = "claim"    // threads with a claim (tenant, thread)
	indexIdle     = "idle"     // threads in which nothing is to be done (, time of change and thread)
	indexDispatch = "dispatch" // dispatches (, id), unique if a caller chose the id
	indexOrder    = "order"    // dispatches (thread, place)
	indexStatus   = "status"   // dispatches (status, time of change and id)
	indexRun      = "run"      // runs (, id), unique if a caller chose the id
	// The others have runs by when they were made, the newest first.
	indexRuns       = "runs"        // all
	indexRunsStatus = "runs-status" // by status
	indexRunsAgent  = "runs-agent"  // by agent
	indexRunsTenant = "runs-tenant" // by the tenant of the thread
	indexRunsThread = "runs-thread" // by thread
)

// cellID names a cell of a thread.
type cellID struct{ kind, key string }

// queued is what the queue of a thread knows of a dispatch.
type queued struct {
	ID        string    `json:"id"`
	Run       string    `json:"run"`
	Available time.Time `json:"available"`
	Holding   bool      `json:"holding,omitzero"`
}

// place orders the dispatches of a thread: by priority, then by Seq.
func place(priority uint8, seq uint64) string {
	return string([]byte{priority}) + store.Number(int64(seq)) //nolint:gosec // counts from 1
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("mailbox: %T: %v", v, err)) // times are bounded, and the rest can be encoded
	}
	return data
}

func decode(thread string, id cellID, value []byte, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%s %.80q of thread %.80q is damaged: %w", id.kind, id.key, thread, err)
	}
	return nil
}

// threadCell is the cell of a thread record.
func threadCell(t *Thread) store.Cell {
	c := store.Cell{Kind: kindThread, Value: encode(t)}
	index := func(name, group, key string) {
		c.Index = append(c.Index, store.IndexKey{Name: name, Group: group, Key: key})
	}
	index(indexThread, "", t.ID)
	if t.Tenant != "" {
		index(indexTenant, t.Tenant, t.ID)
	}
	if t.Open.Wait != "" {
		index(indexWait, t.Open.Wait, t.ID)
	}
	if t.Parent != "" {
		index(indexChild, t.Parent, t.ID)
	}
	if t.Claim != nil {
		index(indexClaim, t.Tenant, t.ID)
	}
	if t.idle() {
		index(indexIdle, "", changedThread(t))
	}
	switch {
	case t.DueAt.IsZero():
	case t.DueAt.After(t.UpdatedAt):
		index(indexLater, "", store.Number(t.DueAt.UnixMilli())+t.ID)
	default:
		index(indexReady, "", store.Number(t.Rank)+t.ID)
	}
	return c
}

// ListedThread returns the cell of the record of a thread whose runs another program executes: lists have it, and nothing is due in it. It
// takes the snapshot of a read of [ListedQuery], and returns false when the mailbox has runs in the thread.
func ListedThread(s store.Snapshot, t Thread) (store.Cell, bool) {
	var old Thread
	if value, ok := s.Cell(kindThread, ""); ok {
		if json.Unmarshal(value, &old) != nil || old.Seq != 1 || old.Fence != 0 || old.Latest.ID != "" {
			return store.Cell{}, false
		}
		t.Title, t.Metadata, t.CreatedAt, t.PausedAt = old.Title, old.Metadata, old.CreatedAt, old.PausedAt
	}
	t.Seq = 1
	return threadCell(&t), true
}

// ListedQuery is what [ListedThread] depends on.
func ListedQuery() store.Range { return store.One(kindThread, "") }

// idle reports whether nothing of the thread is queued, executed, waiting or paused: it may be dropped when it is old.
func (t *Thread) idle() bool {
	return t.Seq > 0 && t.Claim == nil && t.Queued == 0 && t.Open.ID == "" && t.PausedAt.IsZero()
}

// changedThread orders threads by their latest change, then by id.
func changedThread(t *Thread) string { return store.Number(t.UpdatedAt.UnixMilli()) + t.ID }

func dispatchCell(d *Dispatch) store.Cell {
	return store.Cell{Kind: kindDispatch, Key: d.ID, Value: encode(d), Index: []store.IndexKey{
		{Name: indexDispatch, Key: d.ID, Unique: !d.Own},
		{Name: indexOrder, Group: d.Thread, Key: place(d.Priority, d.Seq)},
		{Name: indexStatus, Group: string(d.Status), Key: changedKey(d)},
	}}
}

// changedKey orders dispatches by their latest change, then by id.
func changedKey(d *Dispatch) string { return store.Number(d.UpdatedAt.UnixMilli()) + d.ID }

// madeKey orders runs by when they were made, the newest first, then by id.
func madeKey(r *Run) string { return store.Number(-r.CreatedAt.UnixMilli()) + r.ID }

func runCell(r *Run, tenant string) store.Cell {
	c := store.Cell{Kind: kindRun, Key: r.ID, Value: encode(r), Index: []store.IndexKey{{Name: indexRun, Key: r.ID, Unique: !r.Own}}}
	for name, group := range map[string]string{
		indexRuns: "", indexRunsStatus: string(r.Status), indexRunsAgent: r.Agent, indexRunsTenant: tenant, indexRunsThread: r.Thread,
	} {
		if group != "" || name == indexRuns {
			c.Index = append(c.Index, store.IndexKey{Name: name, Group: group, Key: madeKey(r)})
		}
	}
	return c
}
