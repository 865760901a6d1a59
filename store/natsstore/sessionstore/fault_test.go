package sessionstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

func message(id string) abi.Message {
	return abi.Message{ID: id, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("text of " + id)}}
}

func expect(t *testing.T, s session.Store, want ...string) {
	t.Helper()
	log, err := s.Log("t")
	var got []string
	for i := range log {
		got = append(got, log[i].ID)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q; %v", got, want, err)
	}
}

// What was written and whose acknowledgement was lost is there once.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	mailbox, line := servertest.OnLine(t, time.Minute)
	s := open(t, mailbox)
	rev := uint64(0)
	for i := range 3 {
		line.Hiccup(func() {
			if err := s.Append("t", message(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
		line.Hiccup(func() {
			var err error
			if rev, err = s.Swap("t", rev, compaction.State{Total: i + 1}); err != nil {
				t.Error(err)
			}
		})
		line.Hiccup(func() {
			if err := s.Record(compaction.Event{Thread: "t", Attempt: i}); err != nil {
				t.Error(err)
			}
		})
	}
	expect(t, s, "0", "1", "2")
	if state, at, err := s.Load("t"); err != nil || at != rev || state.Total != 3 {
		t.Errorf("state %d at %d, want 3 at %d; %v", state.Total, at, rev, err)
	}
	events, err := s.Events("t")
	for i := range events {
		if events[i].Attempt != i {
			t.Errorf("event %d is %d", i, events[i].Attempt)
		}
	}
	if err != nil || len(events) != 3 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// What may have been kept although a call failed is there once when it is given again, and the next swap finds out.
func TestFailedAndGivenAgain(t *testing.T) {
	t.Parallel()
	mailbox, line := servertest.OnLine(t, 4*time.Second)
	s := open(t, mailbox)
	rev, err := s.Swap("t", 0, compaction.State{Total: 1})
	if err := errors.Join(err, s.Append("t", message("a"))); err != nil {
		t.Fatal(err)
	}
	line.Cut()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Swap("t", rev, compaction.State{Total: 2}); err == nil || errors.Is(err, compaction.ErrConflict) {
			t.Errorf("swapped without an answer: %v", err)
		}
	})
	for range 2 {
		if err := s.Append("t", message("b"), message("c")); err == nil {
			t.Error("appended without an answer")
		}
	}
	wg.Wait()
	line.Heal()
	for err := s.Append("t", message("b"), message("c"), message("d")); err != nil; {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		err = s.Append("t", message("b"), message("c"), message("d"))
	}
	expect(t, s, "a", "b", "c", "d")
	if _, err := s.Swap("t", rev, compaction.State{Total: 2}); !errors.Is(err, compaction.ErrConflict) {
		t.Errorf("the swap that landed was not found: %v", err)
	}
	if state, _, err := s.Load("t"); err != nil || state.Total != 2 {
		t.Errorf("state %d, %v", state.Total, err)
	}
}

// Two handles of one log do no harm to it.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	one, other := open(t, mailbox), open(t, mailbox)
	var want []string
	for i := range 10 {
		for w, s := range []session.Store{one, other} {
			id := fmt.Sprint(w, "/", i)
			if err := s.Append("t", message(id)); err != nil {
				t.Fatal(err)
			}
			want = append(want, id)
		}
	}
	expect(t, one, want...)
	expect(t, other, want...)
}

// A log of which a part is missing is not guessed at.
func TestGapIsTold(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s := open(t, mailbox)
	for i := range 3 {
		if err := s.Append("t", message(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := servertest.Stream(t, mailbox.Link().Name+"-sessions").DeleteMsg(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Log("t"); err == nil || !strings.Contains(err.Error(), "record 2 of its log is missing") {
		t.Errorf("got %v", err)
	}
}

// Of long states nothing is left but the last.
func TestLongStates(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s := open(t, mailbox)
	rev := uint64(0)
	for i := range 4 {
		var err error
		state := compaction.State{Total: i, Markers: []compaction.Marker{{Summary: strings.Repeat("x", 1<<20)}}}
		if rev, err = s.Swap("t", rev, state); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Swap("t", rev, compaction.State{Total: 9}); err != nil {
		t.Fatal(err)
	}
	if info, err := servertest.Stream(t, mailbox.Link().Name+"-sessions").Info(t.Context()); err != nil || info.State.Msgs != 1 {
		t.Errorf("%d messages are left, %v", info.State.Msgs, err)
	}
	if err := s.Record(compaction.Event{Thread: "t", Reason: strings.Repeat("x", 1<<20)}); err == nil {
		t.Error("an event of 1 MiB was taken")
	}
}
