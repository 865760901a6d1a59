package sqlitestore

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// view is a thread in one transaction, with what was found of it.
type view struct {
	c     *engine.Conn
	id    string
	known bool // the thread is there
	head  mailbox.Head
	cache *cache // nil for those who only read
	// dispatches and runs are all that was looked for, also in other threads, and with an empty id what
	// is not there.
	dispatches map[string]place
	runs       map[string]place
}

// place is what a change has to know of something that is there.
type place struct {
	thread string
	status mailbox.Status
	data   digest
}

// digest tells payloads apart without keeping them.
type digest [sha256.Size]byte

func digestOf(data []byte) digest {
	if len(data) == 0 {
		return digest{}
	}
	return sha256.Sum256(data)
}

func newView(c *engine.Conn, id string) *view {
	return &view{c: c, id: id, head: mailbox.Head{Thread: id}, dispatches: map[string]place{}, runs: map[string]place{}}
}

const (
	selectHead      = `SELECT ` + headColumns + ` FROM thread WHERE id = ?`
	selectDispatch  = `SELECT ` + dispatchColumns + ` FROM dispatch WHERE id = ?`
	selectRun       = `SELECT ` + runColumns + ` FROM run WHERE id = ?`
	selectDuplicate = `SELECT id FROM dispatch WHERE thread = ? AND dedupe = ? AND dedupe <> '' AND status IN ('queued', 'claimed')`
	selectNext      = `SELECT
		(SELECT id FROM dispatch WHERE thread = ? AND status = 'queued' AND coalesce(available_at <= ?, 1) ORDER BY priority, seq LIMIT 1),
		(SELECT id FROM dispatch WHERE thread = ? AND status = 'queued' AND holding = 1 ORDER BY priority, seq LIMIT 1),
		(SELECT available_at FROM dispatch WHERE thread = ? AND status = 'queued' AND available_at > ? ORDER BY available_at LIMIT 1)`
	selectQueued = `SELECT id FROM dispatch WHERE thread = ? AND status = 'queued' ORDER BY priority, seq`
)

// load reads what need names.
func (v *view) load(need mailbox.Need) (mailbox.State, error) {
	out := mailbox.State{Dispatches: map[string]mailbox.Dispatch{}, Runs: map[string]mailbox.Run{}}
	head := v.loadHead
	if need.Lenient {
		head = v.salvageHead
	}
	if err := head(); err != nil {
		return out, err
	}
	out.Head = v.head
	if v.head.Claim != nil {
		claim := *v.head.Claim
		out.Head.Claim = &claim
	}
	ids, err := v.wanted(need, &out)
	if err != nil {
		return out, err
	}
	for _, id := range ids {
		if err := v.loadDispatch(id, need.Requests, out.Dispatches); err != nil {
			return out, err
		}
	}
	for _, id := range v.runsOf(need, out.Dispatches) {
		if err := v.loadRun(id, out.Runs); err != nil {
			return out, err
		}
	}
	if need.Image {
		err = v.c.Query(func(r *engine.Row) { out.Image = r.Bytes() }, "SELECT data FROM image WHERE thread = ?", v.id)
	}
	return out, err
}

func (v *view) loadHead() error {
	if h, ok := v.cache.head(v.id); ok {
		v.head, v.known = h, true
		return nil
	}
	return v.c.Query(func(r *engine.Row) { v.head, v.known = readHead(r), true }, selectHead, v.id)
}

// salvage are a fence and a time that are not before those of the thread, and whether something is left of a claim.
const salvage = `SELECT max(ifnull(fence, 0), ifnull(claim_fence, 0), ifnull((SELECT max(fence) FROM dispatch WHERE thread = t.id AND typeof(fence) = 'integer'), 0)),
	CASE WHEN typeof(updated_at) = 'integer' THEN updated_at ELSE (SELECT max(updated_at) FROM dispatch WHERE thread = t.id AND typeof(updated_at) = 'integer') END,
	coalesce(claim_dispatch, claim_token, claim_fence, claim_owner, claim_until, claim_stop) IS NOT NULL
	FROM (SELECT id, claim_dispatch, claim_token, claim_owner, claim_until, claim_stop, updated_at,
		CASE WHEN typeof(fence) = 'integer' THEN fence END AS fence, CASE WHEN typeof(claim_fence) = 'integer' THEN claim_fence END AS claim_fence
		FROM thread WHERE id = ?) AS t`

// salvageHead reads the head past the cache. A value of another kind than it should be reads as none.
func (v *view) salvageHead() error {
	if err := v.c.Query(func(r *engine.Row) { v.head, v.known = readHead(r), true }, selectHead, v.id); err != nil {
		return err
	}
	return v.c.Query(func(r *engine.Row) {
		v.head.Fence, v.head.UpdatedAt = r.Uint(), r.Time()
		if r.Bool() && v.head.Claim == nil {
			v.head.Claim = &mailbox.Claim{}
		}
	}, salvage, v.id)
}

// wanted finds the ids of the dispatches that need names.
func (v *view) wanted(need mailbox.Need, out *mailbox.State) (ids []string, err error) {
	ids = slices.Clone(need.Dispatches)
	if need.Claimed && v.head.Claim != nil {
		ids = append(ids, v.head.Claim.Dispatch)
	}
	if need.Dedupe != "" {
		err = v.c.Query(func(r *engine.Row) { out.Duplicate = r.Text() }, selectDuplicate, v.id, need.Dedupe)
		ids = append(ids, out.Duplicate)
	}
	if v.head.Queued == 0 {
		return ids, err
	}
	if need.Next && err == nil {
		err = v.c.Query(func(r *engine.Row) { out.Next, out.Holder, out.Later = r.Text(), r.Text(), r.Time() }, selectNext,
			v.id, milli(need.Now), v.id, v.id, milli(need.Now))
		ids = append(ids, out.Next, out.Holder)
	}
	if need.Queued && err == nil {
		err = v.c.Query(func(r *engine.Row) { out.Queued = append(out.Queued, r.Text()) }, selectQueued, v.id)
		ids = append(ids, out.Queued...)
	}
	return ids, err
}

// milli is a time that is compared with, also if it is zero.
func milli(t time.Time) int64 { return t.UnixMilli() }

func (v *view) runsOf(need mailbox.Need, dispatches map[string]mailbox.Dispatch) []string {
	ids := slices.Clone(need.Runs)
	if need.RunsOf {
		ids = append(ids, v.head.Open.ID, v.head.Latest.ID)
		for id := range dispatches {
			ids = append(ids, dispatches[id].RunID)
		}
	}
	return ids
}

// loadDispatch reads a dispatch, if it is there and of this thread. A thread that is not there has none.
func (v *view) loadDispatch(id string, request bool, into map[string]mailbox.Dispatch) error {
	if _, seen := v.dispatches[id]; seen || id == "" || !v.known {
		return nil
	}
	d, err := v.findDispatch(id)
	if err != nil {
		return err
	}
	v.dispatches[id] = place{thread: d.Thread, status: d.Status}
	if d.ID == "" || d.Thread != v.id {
		return nil
	}
	if request {
		if err := v.c.Query(func(r *engine.Row) { d.Request = r.Bytes() }, "SELECT data FROM request WHERE dispatch = ?", id); err != nil {
			return err
		}
	}
	into[id] = d
	return nil
}

// findDispatch reads a dispatch of any thread, or nothing. Most of those that the cache does not know are not
// there; a look with few columns is cheaper then.
func (v *view) findDispatch(id string) (d mailbox.Dispatch, err error) {
	if d, ok := v.cache.dispatch(id); ok {
		return d, nil
	}
	there := v.cache == nil
	if !there {
		err = v.c.Query(func(*engine.Row) { there = true }, "SELECT 1 FROM dispatch WHERE id = ?", id)
	}
	if there && err == nil {
		err = v.c.Query(func(r *engine.Row) { d = readDispatch(r) }, selectDispatch, id)
	}
	return d, err
}

// loadRun reads a run, if it is there and of this thread. A thread that is not there has none.
func (v *view) loadRun(id string, into map[string]mailbox.Run) error {
	if _, seen := v.runs[id]; seen || id == "" || !v.known {
		return nil
	}
	if run, ok := v.cache.run(id); ok && run.Thread == v.id {
		v.runs[id] = place{thread: run.Thread, data: digestOf(run.Data)}
		into[id] = run
		return nil
	}
	var run mailbox.Run
	var input string
	if err := v.c.Query(func(r *engine.Row) { run, input = readRun(r) }, selectRun, id); err != nil {
		return err
	}
	v.runs[id] = place{thread: run.Thread}
	if run.ID == "" || run.Thread != v.id {
		return nil
	}
	err := v.c.Query(func(r *engine.Row) { run.Data = r.Bytes() }, "SELECT data FROM run_data WHERE run = ?", id)
	if err != nil {
		return err
	}
	if run.Input, err = decodeInput(input); err != nil {
		return err
	}
	v.runs[id] = place{thread: run.Thread, data: digestOf(run.Data)}
	into[id] = run
	return nil
}
