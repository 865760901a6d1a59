package natsstore_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// queueModel is a queue as a list, and two stores that share it.
type queueModel struct {
	t      *testing.T
	r      *rand.Rand
	stores [2]mailbox.Store
	list   []mailbox.Dispatch
	made   int
	start  time.Time
}

// change makes one transition with some dispatches, by one of the stores.
func (m *queueModel) change(list ...mailbox.Dispatch) {
	m.t.Helper()
	by := m.stores[m.r.IntN(2)]
	err := by.Update(m.t.Context(), "t", mailbox.Need{Now: m.time(), Next: true}, func(s mailbox.State) (c mailbox.Change, err error) {
		h := s.Head
		for i := range list {
			if h.Seq < list[i].Seq {
				c.Runs = append(c.Runs, mailbox.Run{ID: list[i].RunID, Thread: "t", Status: mailbox.RunCreated, UpdatedAt: m.start})
			}
		}
		h.Seq, h.UpdatedAt, c.Head, c.Dispatches = uint64(m.made), m.start, &h, list //nolint:gosec // small
		return c, nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range list {
		m.list = slices.DeleteFunc(m.list, func(d mailbox.Dispatch) bool { return d.ID == list[i].ID })
		if list[i].Status == mailbox.Queued {
			m.list = append(m.list, list[i])
		}
	}
	slices.SortFunc(m.list, func(a, b mailbox.Dispatch) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq))
	})
}

func (m *queueModel) time() time.Time { return m.start.Add(time.Duration(m.r.IntN(100)) * time.Second) }

// some are dispatches of the queue, each once.
func (m *queueModel) some(n int) (list []mailbox.Dispatch) {
	for _, i := range m.r.Perm(len(m.list))[:min(n, len(m.list))] {
		list = append(list, m.list[i])
	}
	return list
}

// shuffle gives a dispatch another time.
func (m *queueModel) shuffle(d *mailbox.Dispatch) {
	d.Status, d.Holding, d.AvailableAt = mailbox.Queued, m.r.IntN(9) == 0, m.time()
	if m.r.IntN(5) == 0 {
		d.AvailableAt = time.Time{}
	}
}

func (m *queueModel) step() {
	m.t.Helper()
	var list []mailbox.Dispatch
	switch m.r.IntN(4) {
	case 0, 1:
		for range m.r.IntN(90) {
			m.made++
			d := mailbox.Dispatch{ID: fmt.Sprint("d", m.made), RunID: fmt.Sprint("r", m.made), Thread: "t", Seq: uint64(m.made), Priority: uint8(m.r.IntN(3)), UpdatedAt: m.start} //nolint:gosec // small
			m.shuffle(&d)
			if m.r.IntN(3) == 0 {
				d.Dedupe = "key of " + d.ID
			}
			list = append(list, d)
		}
	case 2:
		list = m.some(m.r.IntN(80))
		for i := range list {
			list[i].Status = mailbox.Cancelled
		}
	default:
		list = m.some(m.r.IntN(10))
		for i := range list {
			m.shuffle(&list[i])
		}
	}
	m.change(list...)
}

// check compares what a store says with the list.
func (m *queueModel) check(by mailbox.Store) {
	m.t.Helper()
	now, dedupe := m.time(), ""
	if len(m.list) > 0 {
		dedupe = m.list[m.r.IntN(len(m.list))].Dedupe
	}
	s, err := by.Load(m.t.Context(), "t", mailbox.Need{Queued: true, Next: true, Now: now, Dedupe: dedupe})
	if err != nil {
		m.t.Fatal(err)
	}
	var want mailbox.State
	for _, d := range m.list {
		want.Queued = append(want.Queued, d.ID)
		if want.Next == "" && !d.AvailableAt.After(now) {
			want.Next = d.ID
		}
		if want.Holder == "" && d.Holding {
			want.Holder = d.ID
		}
		if d.AvailableAt.After(now) && (want.Later.IsZero() || d.AvailableAt.Before(want.Later)) {
			want.Later = d.AvailableAt
		}
		if dedupe != "" && d.Dedupe == dedupe {
			want.Duplicate = d.ID
		}
		if got := s.Dispatches[d.ID]; got.AvailableAt != d.AvailableAt || got.Holding != d.Holding || got.Status != mailbox.Queued {
			m.t.Fatalf("dispatch %+v, want %+v", got, d)
		}
	}
	if !slices.Equal(s.Queued, want.Queued) {
		m.t.Fatalf("queued %v, want %v", s.Queued, want.Queued)
	}
	if s.Next != want.Next || s.Holder != want.Holder || !s.Later.Equal(want.Later) || s.Duplicate != want.Duplicate {
		m.t.Fatalf("next %q, holder %q, later %v, duplicate %q; want %q, %q, %v and %q", s.Next, s.Holder, s.Later, s.Duplicate, want.Next, want.Holder, want.Later, want.Duplicate)
	}
}

// A queue in pages says the same as a plain list whatever enters it, leaves it and comes back, in whatever process, and when clocks
// go back. Pages do not pile up.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	m := &queueModel{
		t: t, r: rand.New(rand.NewPCG(3, 4)), start: time.UnixMilli(1_700_000_000_000).UTC(), //nolint:gosec // not a secret
		stores: [2]mailbox.Store{open(t, named("list")), open(t, named("list"))},
	}
	steps := 60
	if testing.Short() {
		steps = 20
	}
	longest := 0
	for range steps {
		m.step()
		m.check(m.stores[0])
		m.check(m.stores[1])
		longest = max(longest, len(m.list))
	}
	m.check(open(t, named("list")))
	if longest < 300 {
		t.Errorf("the queue was never longer than %d", longest)
	}
	for len(m.list) > 0 {
		list := m.some(100)
		for i := range list {
			list[i].Status = mailbox.Cancelled
		}
		m.change(list...)
	}
	m.check(m.stores[0])
}
