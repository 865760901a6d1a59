package sessiontest

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
	"github.com/mortise-dev/mortise/session"
)

// TestStore checks that stores keep the contract. Open makes an empty one; what it
// returns next opens the same again beside it, as another process would. Both see to it that
// what they open is closed when the test ends.
func TestStore(t *testing.T, open func(t *testing.T) (s session.Store, again func() session.Store)) {
	t.Helper()
	t.Run("compaction", func(t *testing.T) {
		t.Parallel()
		storetest.TestStore(t, func(t *testing.T) (compaction.Store, func() compaction.Store) {
			t.Helper()
			s, again := open(t)
			return named{s}, func() compaction.Store { return named{again()} }
		})
	})
	for name, check := range map[string]func(*testing.T, session.Store, func() session.Store){
		"order":    order,
		"replace":  replace,
		"unknown":  unknown,
		"refuses":  refuses,
		"names":    names,
		"large":    large,
		"writers":  writers,
		"handles":  handles,
		"conflict": conflict,
		"threads":  threads,
		"events":   events,
		"reopen":   reopen,
		"closed":   closed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, again := open(t)
			check(t, s, again)
		})
	}
}

// named is a store that receives ids of 1 to 1024 bytes, as a store.Store takes them: storetest also has others.
type named struct{ session.Store }

func (n named) Load(thread string) (compaction.State, uint64, error) {
	return n.Store.Load(nameOf(thread))
}

func (n named) Swap(thread string, rev uint64, s compaction.State) (uint64, error) {
	return n.Store.Swap(nameOf(thread), rev, s)
}

func (n named) Record(e compaction.Event) error {
	e.Thread = nameOf(e.Thread)
	return n.Store.Record(e)
}

func nameOf(thread string) string {
	if thread != "" && len(thread) <= 1024 {
		return thread
	}
	return fmt.Sprintf("of %d bytes", len(thread))
}

func message(id, text string) abi.Message {
	return abi.Message{ID: id, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}
}

func add(t *testing.T, s session.Store, thread string, messages ...abi.Message) {
	t.Helper()
	if err := s.Append(thread, messages...); err != nil {
		t.Fatalf("append to %.40q: %v", thread, err)
	}
}

func expect(t *testing.T, s session.Store, thread string, want ...abi.Message) {
	t.Helper()
	got, err := s.Log(thread)
	if err != nil {
		t.Fatalf("log of %.40q: %v", thread, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("log of %.40q is %.400q, want %.400q", thread, ids(got), ids(want))
	}
}

// listed waits until a handle lists these threads: what another handle began may be missing for some seconds.
func listed(t *testing.T, s session.Store, want ...string) {
	t.Helper()
	for late := time.After(10 * time.Second); ; {
		got, err := s.Threads()
		if err == nil && slices.Equal(got, want) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Errorf("%d threads, want %d, in order: %.400q (%v)", len(got), len(want), got, err)
			return
		}
	}
}

func ids(messages []abi.Message) []string {
	out := make([]string, len(messages))
	for i := range messages {
		out[i] = messages[i].ID
	}
	return out
}

// order is that of the calls, and in each that of its messages.
func order(t *testing.T, s session.Store, again func() session.Store) {
	want := []abi.Message{
		message("a", "one\ntwo"),
		{ID: "c", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "1", Name: "x", Arguments: map[string]any{"path": "<a>&", "n": 1.5, "none": nil}}}},
		{ID: "r", Role: abi.RoleTool, ToolCallID: "1", Content: []abi.ContentBlock{abi.Text("\x00\t\x7f")}},
		message("b", "\u2028é</x>\U0001f600"),
	}
	add(t, s, "t", want[:3]...)
	add(t, s, "t")
	add(t, s, "t", want[3])
	for i := range 40 { // ids that no alphabet has in this order
		m := message(fmt.Sprint(100-i), "x")
		want = append(want, m)
		add(t, s, "t", m)
	}
	expect(t, s, "t", want...)
	expect(t, again(), "t", want...)
}

// replace puts messages in the places of others, and others nowhere.
func replace(t *testing.T, s session.Store, again func() session.Store) {
	a, b, c := message("a", "1"), message("b", "2"), message("c", "3")
	add(t, s, "t", a, b, c)
	add(t, s, "u", a)
	a2, c2 := message("a", "redacted"), message("c", "")
	if err := s.Replace("t", c2, a2); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "t", a2, b, c2)
	expect(t, s, "u", a)
	a3 := message("a", "again")
	if err := errors.Join(s.Replace("t", a3), s.Replace("t")); err != nil {
		t.Fatal(err)
	}
	add(t, s, "t", message("d", "4"))
	expect(t, again(), "t", a3, b, c2, message("d", "4"))
	if err := s.Replace("t", message("b", "no"), message("e", "stranger")); err == nil || !strings.Contains(err.Error(), `"e"`) {
		t.Errorf("replaced what is not there: %v", err)
	}
	expect(t, s, "t", a3, b, c2, message("d", "4"))
}

// unknown is a thread without a log, also one that has a state and events.
func unknown(t *testing.T, s session.Store, again func() session.Store) {
	add(t, s, "nothing")
	if _, err := s.Swap("state", 0, compaction.State{Total: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(compaction.Event{Thread: "state", Kind: compaction.EventSwapped}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []session.Store{s, again()} {
		for _, thread := range []string{"nothing", "state", "", "never"} {
			if log, err := s.Log(thread); !errors.Is(err, session.ErrUnknown) || len(log) != 0 {
				t.Errorf("log of %q: %d messages, %v", thread, len(log), err)
			}
			if err := s.Replace(thread, message("a", "x")); !errors.Is(err, session.ErrUnknown) {
				t.Errorf("replace in %q: %v", thread, err)
			}
		}
		if events, err := s.Events("never"); err != nil || len(events) != 0 {
			t.Errorf("%d events, %v", len(events), err)
		}
		if all, err := s.Threads(); err != nil || len(all) != 0 {
			t.Errorf("threads %q, %v", all, err)
		}
	}
}

// refuses what could not come back.
func refuses(t *testing.T, s session.Store, _ func() session.Store) {
	add(t, s, "t", message("a", "x"))
	for name, err := range map[string]error{
		"no id":         s.Append("t", message("b", "x"), abi.Message{Role: abi.RoleUser}),
		"no id at all":  s.Append("new", abi.Message{}),
		"no UTF-8":      s.Append("\xff\x00", message("b", "x")),
		"no UTF-8 here": s.Replace("\xff\x00", message("b", "x")),
	} {
		if err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	expect(t, s, "t", message("a", "x"))
	if all, err := s.Threads(); err != nil || !slices.Equal(all, []string{"t"}) {
		t.Errorf("threads %q, %v", all, err)
	}
}

// hostile are ids that are no file names, nor parts of a pattern or a statement. They have at most 1024 bytes, which every store takes.
func hostile() []string {
	return []string{
		".", "..", "../../x", "/etc/x", `\\host\x`, "a b", "A", "a", "é", "e\u0301", "\x00", "a\x00", "CON", "*", ">", "a.*", "a.>", "$JS.API", "%", "_",
		"'; DROP TABLE x; --", "\n", "\u202e", "-x", strings.Repeat("x", 1023), strings.Repeat("x", 1024), strings.Repeat("é", 512),
	}
}

// names of threads are any, and each is its own.
func names(t *testing.T, s session.Store, again func() session.Store) {
	all := hostile()
	for i, id := range all {
		add(t, s, id, message("m", fmt.Sprint(i)))
		if _, err := s.Swap(id, 0, compaction.State{Total: i + 1}); err != nil {
			t.Errorf("swap of %.40q: %v", id, err)
		}
		if err := s.Record(compaction.Event{Thread: id, Attempt: i + 1}); err != nil {
			t.Errorf("record of %.40q: %v", id, err)
		}
	}
	s = again()
	for i, id := range all {
		expect(t, s, id, message("m", fmt.Sprint(i)))
		if state, _, err := s.Load(id); err != nil || state.Total != i+1 {
			t.Errorf("state of %.40q is %d, want %d (%v)", id, state.Total, i+1, err)
		}
		if got, err := s.Events(id); err != nil || len(got) != 1 || got[0].Attempt != i+1 || got[0].Thread != id {
			t.Errorf("events of %.40q: %d (%v)", id, len(got), err)
		}
	}
	slices.Sort(all)
	listed(t, s, all...)
}

// large messages come back whole, alone and many at a time.
func large(t *testing.T, s session.Store, again func() session.Store) {
	const envelope = 1 << 10 // what is around the text
	want := []abi.Message{message("a", strings.Repeat("0123456789abcdef", (session.MaxMessage-envelope)/16))}
	add(t, s, "t", want[0])
	for i := range 30 {
		want = append(want, message(fmt.Sprint(i), strings.Repeat("x", 100<<10)))
	}
	add(t, s, "t", want[1:]...)
	small := message("a", strings.Repeat("y", 2<<20))
	if err := s.Replace("t", small); err != nil {
		t.Fatal(err)
	}
	want[0] = small
	expect(t, s, "t", want...)
	expect(t, again(), "t", want...)
	state := compaction.State{Markers: []compaction.Marker{{ID: "m", Summary: strings.Repeat("z", 2<<20)}}}
	rev, err := s.Swap("t", 0, state)
	if err != nil {
		t.Fatal(err)
	}
	if got, at, err := again().Load("t"); err != nil || at != rev || !reflect.DeepEqual(got, state) {
		t.Errorf("a large state came back at %d, want %d (%v)", at, rev, err)
	}
}
