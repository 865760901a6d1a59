package threadtest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/storetest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// OpenFunc opens one empty store twice, as two processes would. It closes them with t.Cleanup.
type OpenFunc = func(t *testing.T) (one, other store.Store)

// world is a store with the conversations as two processes see them.
type world struct {
	*testing.T
	store    store.Store
	one, two *thread.Threads
}

// TestThreads checks conversations on a store.
func TestThreads(t *testing.T, open OpenFunc) {
	t.Helper()
	t.Run("compaction", func(t *testing.T) {
		t.Parallel()
		storetest.TestStore(t, func(t *testing.T) (compaction.Store, func() compaction.Store) {
			t.Helper()
			one, other := open(t)
			return named{thread.On(one)}, func() compaction.Store {
				one, other = other, one
				return named{thread.On(one)}
			}
		})
	})
	for name, check := range map[string]func(*world){
		"order": order, "replace": replace, "unknown": unknown, "refuses": refuses, "names": names, "large": large,
		"writers": writers, "events": events, "commit": commit, "conflict": conflict, "drop": drop,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			check(&world{T: t, store: one, one: thread.On(one), two: thread.On(other)})
		})
	}
}

// named is a view that receives ids of 1 to 1024 bytes: storetest also has others.
type named struct{ *thread.Threads }

func (n named) Load(id string) (compaction.State, uint64, error) { return n.Threads.Load(nameOf(id)) }

func (n named) Swap(id string, rev uint64, s compaction.State) (uint64, error) {
	return n.Threads.Swap(nameOf(id), rev, s)
}

func (n named) Record(e compaction.Event) error {
	e.Thread = nameOf(e.Thread)
	return n.Threads.Record(e)
}

func nameOf(id string) string {
	if id != "" && len(id) <= store.MaxKey {
		return id
	}
	return fmt.Sprintf("of %d bytes", len(id))
}

func message(id, text string) abi.Message {
	return abi.Message{ID: id, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}
}

func (w *world) must(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) add(id string, messages ...abi.Message) {
	w.Helper()
	w.must(w.one.Append(w.Context(), id, messages...))
}

// expect checks a log as both processes see it.
func (w *world) expect(id string, want ...abi.Message) {
	w.Helper()
	for _, s := range []*thread.Threads{w.one, w.two} {
		got, err := s.Messages(w.Context(), id)
		if err != nil || !reflect.DeepEqual(got, want) {
			w.Fatalf("log of %.40q has %d messages, want %d (%v)", id, len(got), len(want), err)
		}
	}
}

// soon waits until ok reports true: lists may lack for some time what another process wrote.
func soon(ok func() bool) bool {
	for late := time.After(10 * time.Second); ; {
		if ok() {
			return true
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			return false
		}
	}
}

func (w *world) listed(want ...string) {
	w.Helper()
	var got []string
	for _, s := range []*thread.Threads{w.one, w.two} {
		if !soon(func() bool {
			all, err := s.List(w.Context())
			got = all
			return err == nil && slices.Equal(all, want)
		}) {
			w.Errorf("threads are %.400q, want %.400q", got, want)
		}
	}
}

// order is that of the calls, and in each that of its messages.
func order(w *world) {
	want := []abi.Message{
		message("a", "one\ntwo"),
		{ID: "c", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "1", Name: "x", Arguments: map[string]any{"path": "<a>&", "n": 1.0, "i": int64(1), "none": nil}}}},
		{ID: "r", Role: abi.RoleTool, ToolCallID: "1", Content: []abi.ContentBlock{abi.Text("\x00\t\x7f")}},
		message("b", "\u2028é</x>\U0001f600"),
	}
	w.add("t", want[:3]...)
	w.add("t")
	w.add("t", want[3])
	for i := range 12 { // ids that no alphabet has in this order
		m := message(fmt.Sprint(100-i), "x")
		want = append(want, m)
		w.add("t", m)
	}
	w.expect("t", want...)
}

// replace puts messages in the places of others, and others nowhere.
func replace(w *world) {
	a, b, c := message("a", "1"), message("b", "2"), message("c", "3")
	w.add("t", a, b, c)
	w.add("u", a)
	a2, c2 := message("a", "redacted"), message("c", "")
	w.must(w.one.Replace(w.Context(), "t", c2, a2))
	w.expect("t", a2, b, c2)
	w.expect("u", a)
	a3 := message("a", "again")
	w.must(w.two.Replace(w.Context(), "t", message("a", "first"), a3), w.two.Replace(w.Context(), "t"))
	w.add("t", message("d", "4"))
	w.expect("t", a3, b, c2, message("d", "4"))
	if err := w.one.Replace(w.Context(), "t", message("b", "no"), message("e", "stranger")); err == nil || !strings.Contains(err.Error(), `"e"`) {
		w.Errorf("replaced what is not there: %v", err)
	}
	w.expect("t", a3, b, c2, message("d", "4"))
	_, all, err := readAll(w, "t")
	w.must(err)
	if all[0].At.IsZero() || all[0].ID != "a" {
		w.Errorf("a replaced message is %+v", all[0])
	}
}

func readAll(w *world, id string) (first uint64, all []thread.Message, err error) {
	w.Helper()
	s, err := w.store.Read(w.Context(), id, thread.MessagesQuery(1, 1000))
	w.must(err)
	return thread.MessagesOf(s)
}

// unknown is a thread without a log, also one that has a state and events.
func unknown(w *world) {
	w.add("nothing")
	_, err := w.one.Swap("state", 0, compaction.State{Total: 1})
	w.must(err, w.one.Record(compaction.Event{Thread: "state", Kind: compaction.EventSwapped}))
	for _, id := range []string{"nothing", "state", "never"} {
		if log, err := w.two.Messages(w.Context(), id); !errors.Is(err, thread.ErrUnknown) || len(log) != 0 {
			w.Errorf("log of %q: %d messages, %v", id, len(log), err)
		}
		if err := w.one.Replace(w.Context(), id, message("a", "x")); !errors.Is(err, thread.ErrUnknown) {
			w.Errorf("replace in %q: %v", id, err)
		}
	}
	if events, err := w.two.Events(w.Context(), "never"); err != nil || len(events) != 0 {
		w.Errorf("%d events, %v", len(events), err)
	}
	w.listed()
}

// refuses what could not be read back.
func refuses(w *world) {
	w.add("t", message("a", "x"))
	_, swap := w.one.Swap("", 0, compaction.State{})
	for name, err := range map[string]error{
		"no id":        w.one.Append(w.Context(), "t", message("b", "x"), abi.Message{Role: abi.RoleUser}),
		"no id at all": w.one.Append(w.Context(), "new", abi.Message{}),
		"no UTF-8":     w.one.Append(w.Context(), "\xff\x00", message("b", "x")),
		"no thread":    w.one.Append(w.Context(), "", message("b", "x")),
		"long":         w.one.Append(w.Context(), strings.Repeat("x", store.MaxKey+1), message("b", "x")),
		"swap":         swap,
	} {
		if err == nil {
			w.Errorf("%s: was accepted", name)
		}
	}
	w.expect("t", message("a", "x"))
	w.listed("t")
}

// hostile are ids that are no file names, nor parts of a pattern or a statement.
func hostile() []string {
	return []string{
		".", "..", "../../x", "/etc/x", `\\host\x`, "a b", "A", "a", "é", "e\u0301", "\x00", "a\x00", "CON", "*", ">", "a.*", "a.>", "$JS.API", "%", "_",
		"'; DROP TABLE x; --", "\n", "\u202e", "-x", strings.Repeat("x", 1023), strings.Repeat("x", 1024), strings.Repeat("é", 512),
	}
}

// names of threads are any, and each is its own.
func names(w *world) {
	all := hostile()
	for i, id := range all {
		_, err := w.one.Commit(w.Context(), id, thread.Commit{
			Append: []abi.Message{message("m", fmt.Sprint(i))}, State: &compaction.State{Total: i + 1}, Events: []compaction.Event{{Thread: id, Attempt: i + 1}},
		})
		w.must(err)
	}
	for i, id := range all {
		w.expect(id, message("m", fmt.Sprint(i)))
		state, _, err := w.two.Load(id)
		got, err2 := w.two.Events(w.Context(), id)
		if err := errors.Join(err, err2); err != nil || state.Total != i+1 || len(got) != 1 || got[0].Attempt != i+1 || got[0].Thread != id {
			w.Errorf("%.40q has state %d, events %+v, want %d (%v)", id, state.Total, got, i+1, err)
		}
	}
	slices.Sort(all)
	w.listed(all...)
}

// large messages come back whole, alone and many at a time.
func large(w *world) {
	const envelope = 1 << 10 // what is around the text
	want := []abi.Message{message("a", strings.Repeat("0123456789abcdef", (thread.MaxMessage-envelope)/16))}
	w.add("t", want[0])
	for i := range 30 {
		want = append(want, message(fmt.Sprint(i), strings.Repeat("x", 100<<10)))
	}
	w.add("t", want[1:]...)
	want[0] = message("a", strings.Repeat("y", 2<<20))
	w.must(w.one.Replace(w.Context(), "t", want[0]))
	w.expect("t", want...)
	state := compaction.State{Markers: []compaction.Marker{{ID: "m", Summary: strings.Repeat("z", 2<<20)}}}
	rev, err := w.one.Swap("t", 0, state)
	w.must(err)
	if got, at, err := w.two.Load("t"); err != nil || at != rev || !reflect.DeepEqual(got, state) {
		w.Errorf("a large state came back at %d, want %d (%v)", at, rev, err)
	}
}
