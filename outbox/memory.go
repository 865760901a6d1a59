package outbox

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Memory is a [Store] that lasts as long as the process. Make one with
// [NewMemory].
type Memory struct {
	mu    sync.Mutex
	index index
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{index: newIndex()} }

// Append implements [Store].
func (m *Memory) Append(_ context.Context, c Change) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.index.taken(c.Thread, c.Key) {
		return 0, nil
	}
	o := m.index.plan(c)
	m.index.apply(o)
	return o.Seq, nil
}

// Pending implements [Store].
func (m *Memory) Pending(_ context.Context, thread string, after uint64, limit int) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index.pending(thread, after, limit), nil
}

// Remove implements [Store].
func (m *Memory) Remove(_ context.Context, thread string, seqs ...uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index.apply(op{Kind: opRemove, Thread: thread, Seqs: seqs})
	return nil
}

// Forget implements [Store].
func (m *Memory) Forget(_ context.Context, thread string, tasks ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index.apply(op{Kind: opForget, Thread: thread, Tasks: tasks})
	return nil
}

// Threads implements [Store].
func (m *Memory) Threads(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index.names(), nil
}

// Records implements [Store].
func (m *Memory) Records(_ context.Context, thread string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index.records(thread), nil
}

// Kinds of operations.
const (
	opAppend = "append"
	opRemove = "remove"
	opForget = "forget"
	opNext   = "next" // the next sequence number, at the head of a rewritten journal
)

// op is one step of an index, as the journal keeps it.
type op struct {
	Kind   string   `json:"op"`
	Thread string   `json:"thread,omitempty"`
	Seq    uint64   `json:"seq,omitempty"`
	Task   string   `json:"task,omitempty"`
	Record []byte   `json:"record,omitempty"`
	Key    string   `json:"key,omitempty"`
	Data   []byte   `json:"data,omitempty"`
	AtMS   int64    `json:"at_ms,omitempty"`
	Seqs   []uint64 `json:"seqs,omitempty"`
	Tasks  []string `json:"tasks,omitempty"`
}

// index is the state of a store in memory. Its owner guards it.
type index struct {
	next    uint64
	threads map[string]*thread
}

type thread struct {
	entries []Entry // oldest first
	records map[string][]byte
	keys    map[string]bool
}

func newIndex() index { return index{next: 1, threads: map[string]*thread{}} }

func (x *index) taken(name, key string) bool {
	t := x.threads[name]
	return key != "" && t != nil && t.keys[key]
}

// plan turns a change into an operation, and takes a sequence number for it.
func (x *index) plan(c Change) op {
	o := op{Kind: opAppend, Thread: c.Thread, Task: c.Task, Record: c.Record, Key: c.Key, Data: c.Data, AtMS: c.At.UnixMilli()}
	if c.Data != nil {
		o.Seq = x.next
		x.next++
	}
	return o
}

func (x *index) apply(o op) {
	if o.Kind == opNext {
		x.next = max(x.next, o.Seq)
		return
	}
	t := x.threads[o.Thread]
	if t == nil {
		t = &thread{records: map[string][]byte{}, keys: map[string]bool{}}
		x.threads[o.Thread] = t
	}
	switch o.Kind {
	case opAppend:
		t.append(o)
		x.next = max(x.next, o.Seq+1)
	case opRemove:
		gone := make(map[uint64]bool, len(o.Seqs))
		for _, seq := range o.Seqs {
			gone[seq] = true
		}
		t.entries = slices.DeleteFunc(t.entries, func(e Entry) bool { return gone[e.Seq] })
	case opForget:
		for _, task := range o.Tasks {
			delete(t.records, task)
			delete(t.keys, task)
		}
	}
	if len(t.entries)+len(t.records)+len(t.keys) == 0 {
		delete(x.threads, o.Thread)
	}
}

func (t *thread) append(o op) {
	if o.Task != "" {
		t.records[o.Task] = o.Record
	}
	if o.Key != "" {
		t.keys[o.Key] = true
	}
	if o.Seq != 0 {
		t.entries = append(t.entries, Entry{Seq: o.Seq, Data: o.Data, At: milli(o.AtMS)})
	}
}

func (x *index) pending(name string, after uint64, limit int) []Entry {
	t := x.threads[name]
	if t == nil || limit <= 0 {
		return nil
	}
	from, _ := slices.BinarySearchFunc(t.entries, after+1, func(e Entry, seq uint64) int {
		switch {
		case e.Seq < seq:
			return -1
		case e.Seq > seq:
			return 1
		default:
			return 0
		}
	})
	return slices.Clone(t.entries[from:min(len(t.entries), from+limit)])
}

func (x *index) names() []string { return slices.Sorted(maps.Keys(x.threads)) }

func (x *index) records(name string) map[string][]byte {
	t := x.threads[name]
	if t == nil {
		return nil
	}
	return maps.Clone(t.records)
}

// ops returns the shortest journal that leads to this state.
func (x *index) ops() []op {
	out := []op{{Kind: opNext, Seq: x.next}}
	for _, name := range x.names() {
		t := x.threads[name]
		for _, task := range slices.Sorted(maps.Keys(t.records)) {
			o := op{Kind: opAppend, Thread: name, Task: task, Record: t.records[task]}
			if t.keys[task] {
				o.Key = task
			}
			out = append(out, o)
		}
		for _, key := range slices.Sorted(maps.Keys(t.keys)) {
			if _, ok := t.records[key]; !ok {
				out = append(out, op{Kind: opAppend, Thread: name, Key: key})
			}
		}
		for _, e := range t.entries {
			out = append(out, op{Kind: opAppend, Thread: name, Seq: e.Seq, Data: e.Data, AtMS: e.At.UnixMilli()})
		}
	}
	return out
}
