package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// Ids that cannot name a thread of a store are refused, and leave nothing.
func TestOn_ids(t *testing.T) {
	t.Parallel()
	s := session.On(memstore.New())
	m := abi.Message{ID: "m", Role: abi.RoleUser}
	for _, id := range []string{"", strings.Repeat("x", store.MaxKey+1)} {
		_, swap := s.Swap(id, 0, compaction.State{})
		for what, err := range map[string]error{"append": s.Append(id, m), "swap": swap, "record": s.Record(compaction.Event{Thread: id})} {
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%s to an id of %d bytes: %v", what, len(id), err)
			}
		}
	}
	if all, err := s.Threads(); err != nil || len(all) != 0 {
		t.Errorf("threads %q, %v", all, err)
	}
}

// The store keeps no more events than come back.
func TestOn_events(t *testing.T) {
	t.Parallel()
	below := memstore.New()
	s := session.On(below)
	for i := range session.MaxEvents + 10 {
		if err := s.Record(compaction.Event{Thread: "t", Attempt: i}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Events("t")
	if err != nil || len(got) != session.MaxEvents || got[0].Attempt != 10 {
		t.Errorf("%d events come back, %v", len(got), err)
	}
	kept, err := below.Read(t.Context(), "t", store.Query{Entries: []store.Span{{Log: "session-events", Limit: 2 * session.MaxEvents}}})
	if err != nil || len(kept.Entries) != session.MaxEvents {
		t.Errorf("%d events are kept, %v", len(kept.Entries), err)
	}
}

// The error of an entry that is no line names the thread and the entry.
func TestOn_damaged(t *testing.T) {
	t.Parallel()
	below := memstore.New()
	s := session.On(below)
	_, err := below.Apply(t.Context(), store.Batch{
		Thread: "t",
		Put:    []store.Cell{{Kind: "session-state", Value: []byte("{")}},
		Append: []store.Entry{{Log: "session", Data: []byte(`{"replace":{"id":"z"}}`)}, {Log: "session-events", Data: []byte("[]")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, log := s.Log("t")
	_, rev, load := s.Load("t")
	_, events := s.Events("t")
	for want, err := range map[string]error{
		`line 1: replaces "z", which does not come before`: log, "state: unexpected end": load, "event 1: ": events,
	} {
		if err == nil || rev != 0 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `thread "t"`) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A state that was read of a conversation since dropped does not replace that of the new one.
func TestOn_droppedState(t *testing.T) {
	t.Parallel()
	below := memstore.New()
	s := session.On(below)
	if err := s.Append("t", abi.Message{ID: "m", Role: abi.RoleUser}); err != nil {
		t.Fatal(err)
	}
	old, err := s.Swap("t", 0, compaction.State{Total: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := below.Apply(t.Context(), store.Batch{Thread: "t", Base: store.AnyRevision, Drop: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Append("t", abi.Message{ID: "m", Role: abi.RoleUser}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap("t", 0, compaction.State{Total: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap("t", old, compaction.State{Total: 3}); !errors.Is(err, compaction.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
