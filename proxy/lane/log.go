package lane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// Names in the store. A lane is a thread of the store: package thread has its messages, compactions and decisions, and these cells the rest.
const (
	kindLane   = "proxy.lane"
	keyState   = "state"
	keyVersion = "version"
	// indexName has lanes by what they never share, the latest first, each with its version; indexOrigin by how they begin; indexUsed has
	// all by when they were used.
	indexName   = "proxy.lanes"
	indexOrigin = "proxy.origins"
	indexUsed   = "proxy.used"
	usedGroup   = "all"
	kindOwn     = "proxy.secret"
	// own is the store's thread of what is the proxy's, and begins the names of others. Clients of a server with the same store have no such
	// threads: the name is not valid UTF-8.
	own = "\xffproxy"
)

// errStale is a lane that another process has saved since it was read.
var errStale = errors.New("another process has changed the lane")

// log keeps lanes in a store.
type log struct {
	store   store.Store
	threads *thread.Threads
	listed  Listing
}

// Listing lists threads elsewhere, with a cell that it makes of what it selects. Cell returns false when that is not its own.
type Listing interface {
	Query() store.Range
	Cell(s store.Snapshot, st *State, messages int) (store.Cell, bool)
}

// listed is a lane as the index has it.
type listed struct {
	id      string
	version uint64
}

// list returns the newest lanes of a group.
func (l *log) list(ctx context.Context, group string, limit int) (all []listed, err error) {
	refs, err := l.store.Scan(ctx, store.Scan{Index: indexName, Group: group, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("proxy: lanes: %w", err)
	}
	for _, ref := range refs {
		version, err := store.ParseNumber(ref.IndexKey[min(8, len(ref.IndexKey)):])
		if err == nil {
			all = append(all, listed{ref.Thread, uint64(version)}) //nolint:gosec // counts from 1
		}
	}
	return all, nil
}

// origins returns the newest lanes that begin in a way.
func (l *log) origins(ctx context.Context, origin string) (ids []string, err error) {
	const most = 8
	refs, err := l.store.Scan(ctx, store.Scan{Index: indexOrigin, Group: origin, Limit: most})
	if err != nil {
		return nil, fmt.Errorf("proxy: lanes: %w", err)
	}
	for _, ref := range refs {
		ids = append(ids, ref.Thread)
	}
	return ids, nil
}

// read returns a lane, nil if there is none.
func (l *log) read(ctx context.Context, id string) (*State, error) {
	snap, err := l.store.Read(ctx, id, store.Query{Cells: []store.Range{store.One(kindLane, keyState)}})
	if err != nil {
		return nil, fmt.Errorf("proxy: lane %s: %w", id, err)
	}
	raw, ok := snap.Cell(kindLane, keyState)
	if !ok {
		return nil, nil //nolint:nilnil // there is none
	}
	st := &State{}
	if err := json.Unmarshal(raw, st); err != nil {
		return nil, fmt.Errorf("proxy: lane %s is damaged: %w", id, err)
	}
	return st, l.undone(ctx, st)
}

// undone takes the compaction out of a lane whose marker was taken back.
func (l *log) undone(ctx context.Context, st *State) error {
	if st.Swap == nil || st.Swap.Marker == "" {
		return nil
	}
	c, _, err := l.threads.State(ctx, st.ID)
	if err != nil {
		return fmt.Errorf("proxy: lane %s: %w", st.ID, err)
	}
	if c.Total == 0 {
		return nil // the marker of a fork is in the thread that it was forked from
	}
	if n := len(c.Markers); n == 0 || c.Markers[n-1].ID != st.Swap.Marker {
		st.Floor = st.Usage.Prompt() + st.Swap.Removed - st.Swap.Tokens
		st.Swap = nil
	}
	return nil
}

// write saves a lane with what is new in its thread, unless another process has saved it since: errStale.
func (l *log) write(ctx context.Context, st *State, c thread.Commit, marker *compaction.Marker) error {
	next := *st
	next.Version++
	raw, err := json.Marshal(&next)
	if err != nil {
		return fmt.Errorf("proxy: lane %s: %w", st.ID, err)
	}
	if marker != nil {
		state, base, err := l.threads.State(ctx, st.ID)
		if err != nil {
			return fmt.Errorf("proxy: lane %s: %w", st.ID, err)
		}
		marked(&state, marker)
		c.State, c.Base = &state, base
	}
	used := st.Used.UnixMilli()
	index := []store.IndexKey{
		{Name: indexName, Group: st.Group, Key: store.Number(-used) + store.Number(int64(next.Version))}, //nolint:gosec // counts from 1
		{Name: indexUsed, Group: usedGroup, Key: store.Number(used)},
	}
	if st.Origin != "" {
		index = append(index, store.IndexKey{Name: indexOrigin, Group: st.Origin, Key: store.Number(-used)})
	}
	c.Put = append(c.Put, store.Cell{Kind: kindLane, Key: keyState, Value: raw},
		store.Cell{Kind: kindLane, Key: keyVersion, Value: []byte(store.Number(int64(next.Version))), Index: index}) //nolint:gosec // as above
	q := c.Query()
	q.Cells = append(q.Cells, store.One(kindLane, keyVersion))
	if l.listed != nil {
		q.Cells = append(q.Cells, l.listed.Query())
		q.Entries = append(q.Entries, store.Span{Log: thread.MessageKind})
	}
	_, err = store.Update(ctx, l.store, st.ID, q, func(snap store.Snapshot) (*store.Batch, error) {
		var now uint64
		if value, ok := snap.Cell(kindLane, keyVersion); ok {
			n, _ := store.ParseNumber(string(value))
			now = uint64(n) //nolint:gosec // counts from 1
		}
		if now != st.Version {
			return nil, errStale
		}
		b := &store.Batch{Thread: st.ID}
		if l.listed != nil {
			n := int(snap.Last[thread.MessageKind]) + len(c.Append) //nolint:gosec // a count
			if cell, ok := l.listed.Cell(snap, &next, n); ok {
				b.Put = append(b.Put, cell)
			}
		}
		return b, c.AddTo(b, snap)
	})
	switch {
	case errors.Is(err, compaction.ErrConflict):
		return errStale
	case err != nil && !errors.Is(err, errStale):
		err = fmt.Errorf("proxy: lane %s: %w", st.ID, err)
	case err == nil:
		st.Version = next.Version
	}
	return err
}

// clientPolicy names compactions by the client in markers.
const clientPolicy = "client"

// marked adds a marker. Of those before stays the client's newest, which cannot be taken back for the client, but is what the view begins with.
func marked(s *compaction.State, m *compaction.Marker) {
	s.Markers = slices.DeleteFunc(s.Markers, func(old compaction.Marker) bool { return old.Policy != clientPolicy || m.Policy == clientPolicy })
	if n := len(s.Markers); n > 0 {
		m.FromID = s.Markers[n-1].FromID
	}
	s.Markers = append(s.Markers, *m)
	s.Total++
	s.Undone = nil
}

// messages returns messages of a lane's thread, by their numbers from 1.
func (l *log) messages(ctx context.Context, id string, from uint64, limit int) ([]abi.Message, error) {
	snap, err := l.store.Read(ctx, id, thread.MessagesQuery(from, limit))
	if err != nil {
		return nil, fmt.Errorf("proxy: lane %s: %w", id, err)
	}
	_, list, err := thread.MessagesOf(snap)
	if err != nil {
		return nil, fmt.Errorf("proxy: lane %s: %w", id, err)
	}
	out := make([]abi.Message, len(list))
	for i := range list {
		if out[i], err = thread.Decode(list[i].Data); err != nil {
			return nil, fmt.Errorf("proxy: lane %s: %w", id, err)
		}
		out[i].ID = list[i].ID
	}
	return out, nil
}

// trimPage is how many lanes are deleted at a time.
const trimPage = 256

// trim deletes lanes that were not used since a moment, with their threads: stand-ins and the originals that they name go together.
func (l *log) trim(ctx context.Context, before time.Time) error {
	for {
		refs, err := l.store.Scan(ctx, store.Scan{Index: indexUsed, Group: usedGroup, To: store.Number(before.UnixMilli()), Limit: trimPage})
		if err != nil || len(refs) == 0 {
			return err
		}
		for _, ref := range refs {
			if _, err := l.store.Apply(ctx, store.Batch{Thread: ref.Thread, Base: store.AnyRevision, Drop: true}); err != nil {
				return fmt.Errorf("proxy: lane %s: %w", ref.Thread, err)
			}
		}
	}
}

// secret returns a value that is made once, for keyed hashes.
func (l *log) secret(ctx context.Context, fresh []byte) (out []byte, err error) {
	_, err = store.Update(ctx, l.store, own, store.Query{Cells: []store.Range{store.One(kindOwn, keyState)}},
		func(snap store.Snapshot) (*store.Batch, error) {
			if raw, ok := snap.Cell(kindOwn, keyState); ok {
				out = raw
				return nil, nil
			}
			out = fresh
			return &store.Batch{Put: []store.Cell{{Kind: kindOwn, Key: keyState, Value: fresh}}}, nil
		})
	if err != nil {
		return nil, fmt.Errorf("proxy: secret: %w", err)
	}
	return out, nil
}

// Span returns the ids of the first and last message of items, as the log has them.
func (l *Lane) Span(from, to int) (first, last string) {
	if l.Swap.Has(from) {
		first = l.Swap.First
	}
	for i := from; i < min(to, len(l.Messages)); i++ {
		for j := range l.Messages[i] {
			last = l.keptID(&l.Messages[i][j])
			first = cmp.Or(first, last)
		}
	}
	return first, last
}
