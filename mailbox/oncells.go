package mailbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// Kinds of cells that a thread has in the store. Keys are ids, but where something else is said. Messages are entries of the log of that
// kind; cells of it, by place, hold those that were replaced.
const (
	kindHead     = "head" // one, without a key
	kindDispatch = "dispatch"
	kindRequest  = "request"
	kindRun      = "run"
	kindRunData  = "rundata"
	kindQueue    = "queue"  // what is queued, by place
	kindDedupe   = "dedupe" // the dispatch that has a key, by key
	kindImage    = "image"  // one, without a key
	kindMessage  = threads.MessageKind
	kindDamaged  = "damaged" // when a damaged thread was noticed; without a key
)

// Indexes of cells. Groups and keys are in parentheses.
const (
	indexThread   = "thread"   // heads (, thread)
	indexTenant   = "tenant"   // heads (tenant, thread)
	indexWait     = "wait"     // heads (reason, thread)
	indexChild    = "child"    // heads (thread above, thread)
	indexReady    = "ready"    // heads that were due when they were written (, rank and thread)
	indexLater    = "later"    // other heads that will be due (, time and thread)
	indexClaim    = "claim"    // heads with a claim (tenant, thread)
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

func decode(thread string, c store.Cell, into any) error {
	if err := json.Unmarshal(c.Value, into); err != nil {
		return fmt.Errorf("mailbox: thread %.80q: %s %.80q is damaged: %w", thread, c.Kind, c.Key, err)
	}
	return nil
}

// headCell is the cell of a head. Listings leave out one that is dropped.
func headCell(h Head, dropped bool) store.Cell {
	c := store.Cell{Kind: kindHead, Value: encode(h)}
	if dropped {
		return c
	}
	index := func(name, group, key string) {
		c.Index = append(c.Index, store.IndexKey{Name: name, Group: group, Key: key})
	}
	index(indexThread, "", h.Thread)
	if h.Tenant != "" {
		index(indexTenant, h.Tenant, h.Thread)
	}
	if h.Open.Wait != "" {
		index(indexWait, h.Open.Wait, h.Thread)
	}
	if h.Parent != "" {
		index(indexChild, h.Parent, h.Thread)
	}
	if h.Claim != nil {
		index(indexClaim, h.Tenant, h.Thread)
	}
	switch {
	case h.DueAt.IsZero():
	case h.DueAt.After(h.UpdatedAt):
		index(indexLater, "", store.Number(h.DueAt.UnixMilli())+h.Thread)
	default:
		index(indexReady, "", store.Number(h.Rank)+h.Thread)
	}
	return c
}

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
