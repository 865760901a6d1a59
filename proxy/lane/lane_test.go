package lane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases/state"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

func request(t *testing.T, texts ...string) *wire.Request {
	t.Helper()
	var items []string
	for i, text := range texts {
		role := []string{"user", "assistant"}[i%2]
		items = append(items, fmt.Sprintf(`{"role":%q,"content":%q}`, role, text))
	}
	r, err := wire.Parse(wire.Messages, []byte(`{"messages":[`+strings.Join(items, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// How requests relate to lanes, with a session id and without one (section 4 of the specification).
func TestFind(t *testing.T) {
	t.Parallel()
	type step struct {
		texts    string
		answered string // before the request
		named    lane.Change
		plain    lane.Change
	}
	for _, s := range []step{
		{"a", "", lane.New, lane.New},
		{"a", "", lane.Retry, lane.Retry},
		{"a b c", "b", lane.Grow, lane.Grow},
		{"a b c", "", lane.Retry, lane.Retry},
		{"a b c", "d", lane.Again, lane.Again},
		{"a b x", "", lane.Fork, lane.Fork},
		{"y", "", lane.Reset, lane.New},
		{"a", "", lane.Fork, lane.New},
	} {
		for _, session := range []string{"s", ""} {
			set := lane.NewSet(lane.Config{})
			k := &lane.Key{Protocol: wire.Messages, Session: session, Kind: lane.Main}
			ask := func(texts, answer string) lane.Change {
				if answer != "" {
					set.All(func(l *lane.Lane) {
						l.Lock()
						l.Open, l.Answer = false, []string{wire.AnswerKey([]wire.Out{{Type: wire.TypeText, Text: answer}})}
						l.Unlock()
					})
				}
				l, change := set.Find(context.Background(), k, request(t, strings.Fields(texts)...), false)
				l.Open = true
				l.Unlock()
				return change
			}
			for _, before := range []struct{ texts, answer string }{{"a", ""}, {"a b c", "b"}} {
				if s.named == lane.New || s.texts == "a" && s.named == lane.Retry && before.answer != "" || s.texts == "a b c" && s.named == lane.Grow && before.answer != "" {
					break
				}
				ask(before.texts, before.answer)
			}
			want := s.plain
			if session != "" {
				want = s.named
			}
			if got := ask(s.texts, s.answered); got != want {
				t.Errorf("session %q: %q is %s, want %s", session, s.texts, got, want)
			}
		}
	}
}

// stored is a set on a store, with a time that tests set.
func stored(t *testing.T, db store.Store, now *time.Time) *lane.Set {
	t.Helper()
	return lane.NewSet(lane.Config{Store: db, Now: func() time.Time { return *now }, Failed: func(err error) { t.Error(err) }})
}

// find takes a request and gives the lane the messages of its items.
func find(t *testing.T, s *lane.Set, k *lane.Key, texts string) (*lane.Lane, lane.Change) {
	t.Helper()
	r := request(t, strings.Fields(texts)...)
	l, change := s.Find(context.Background(), k, r, false)
	for i := len(l.Messages); i < len(r.Items); i++ {
		l.Messages = append(l.Messages, r.Convert(i))
	}
	return l, change
}

func logOf(t *testing.T, db store.Store, id string) (out []string) {
	t.Helper()
	list, err := thread.On(db).Messages(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		out = append(out, list[i].ID+"="+list[i].Text())
	}
	return out
}

// A lane is a thread of the store: another process continues it, it is listed, and it is deleted when it was not used for long, also from
// the memory of processes that have it.
func TestStored(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := memstore.New()
	now := time.Unix(1_800_000_000, 0)
	k := &lane.Key{Protocol: wire.Messages, Session: "s", Kind: lane.Main}
	set, other := stored(t, db, &now), stored(t, db, &now)
	save := func(s *lane.Set, texts string) (string, lane.Change) {
		l, change := find(t, s, k, texts) //nolint:contextcheck // a test
		defer l.Unlock()
		if err := s.Save(ctx, l); err != nil {
			t.Fatal(err)
		}
		return l.ID, change
	}
	id, _ := save(set, "a")
	for i, s := range []*lane.Set{other, set, other} { // each continues from what the other one has saved
		if got, change := save(s, "a b c d e f g"[:5+4*i]); got != id || change != lane.Grow {
			t.Errorf("request %d is %s of %s", i+2, change, got)
		}
	}
	if got := logOf(t, db, id); strings.Join(got, " ") != "e0/i0=a e0/i1=b e0/i2=c e0/i3=d e0/i4=e e0/i5=f e0/i6=g" {
		t.Errorf("the log is %v", got)
	}
	if all, err := thread.On(db).List(ctx); err != nil || !slices.Equal(all, []string{id}) {
		t.Errorf("listed are %v: %v", all, err)
	}
	for _, later := range []time.Duration{0, time.Second} {
		if err := set.Trim(ctx, now.Add(later)); err != nil {
			t.Fatal(err)
		}
		if got, _ := save(other, "a b c d e f g h i"); (got == id) != (later == 0) {
			t.Errorf("after %s the thread is %s of %s", later, got, id)
		}
	}
	first, _ := set.Secret(ctx, []byte("one"))
	second, _ := other.Secret(ctx, []byte("two"))
	if string(first) != "one" || string(second) != "one" {
		t.Errorf("%s %s", first, second)
	}
}

// Two processes that have one lane at the same time lose nothing of each other's, and a conversation that went two ways becomes two.
func TestConflict(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := memstore.New()
	now := time.Unix(1_800_000_000, 0)
	k := &lane.Key{Protocol: wire.Messages, Session: "s", Kind: lane.Main}
	sets := []*lane.Set{stored(t, db, &now), stored(t, db, &now)}
	values := func(n int64, name string) []byte {
		return lane.Pack(state.Image{Values: map[string]any{"count": n, name: name}})
	}
	l, _ := find(t, sets[0], k, "a b c")
	l.Plugins, l.Money = values(5, "old"), &money.Account{Ledger: money.Ledger{Paid: money.Totals{Calls: 10, Units: 100}}}
	if err := sets[0].Save(ctx, l); err != nil {
		t.Fatal(err)
	}
	id := l.ID
	l.Unlock()
	var both []*lane.Lane
	for i, s := range sets { // overlapping: none is saved before both have begun
		l, change := find(t, s, k, "a b c d e")
		if change != lane.Grow || l.ID != id {
			t.Fatalf("%s of %s", change, l.ID)
		}
		l.Calls++
		l.Edits = append(l.Edits, lane.Edit{Item: i, Block: -1, Text: "x"})
		l.Grafts = append(l.Grafts, lane.Graft{At: 1, Keys: []string{fmt.Sprint(i)}})
		l.Plugins = values(5+int64(i)+1, fmt.Sprint("of", i))
		l.Money.Paid.Calls++
		both = append(both, l)
	}
	for i, l := range both {
		if err := sets[i].Save(ctx, l); err != nil || l.ID != id {
			t.Fatalf("%s: %v", l.ID, err)
		}
		l.Unlock()
	}
	l, _ = find(t, stored(t, db, &now), k, "a b c d e f g")
	if img := lane.Unpack(l.Plugins); img.Values["count"] != int64(8) || img.Values["of0"] == nil || img.Values["of1"] == nil || img.Values["old"] != nil {
		t.Errorf("the values are %v", img.Values)
	}
	if len(l.Edits) != 2 || len(l.Grafts) != 2 || l.Calls != 2 || l.Money.Paid.Calls != 12 || l.Money.Paid.Units != 100 {
		t.Errorf("%+v, paid %+v", l.State, l.Money.Paid)
	}
	l.Unlock()
	if got := logOf(t, db, id); len(got) != 5 {
		t.Errorf("the log is %v", got)
	}
	both = nil
	for i, s := range sets { // other words at the same place
		l, _ := find(t, s, k, "a b c d e f g"+fmt.Sprint(i))
		l.Busy++
		both = append(both, l)
	}
	for i, l := range both {
		if err := sets[i].Save(ctx, l); err != nil {
			t.Fatal(err)
		}
		l.Busy--
		l.Unlock()
	}
	if a, b := both[0], both[1]; a.ID != id || b.ID == id || b.Parent != id || len(logOf(t, db, b.ID)) != 7 || !strings.HasSuffix(logOf(t, db, a.ID)[6], "g0") {
		t.Errorf("%s and %s of %s", a.ID, b.ID, b.Parent)
	}
}

// The texts of a lane are dropped when it was not used for long, but not those of one that is in use; what a compaction replaces is dropped
// once it is kept.
func TestTexts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	db := memstore.New()
	set := lane.NewSet(lane.Config{Store: db, Now: func() time.Time { return now }})
	r := request(t, "a", "b", "c", "d", "e")
	l, _ := set.Find(t.Context(), &lane.Key{Protocol: wire.Messages, Session: "s", Kind: lane.Main}, r, false)
	for i := range r.Items {
		l.Messages = append(l.Messages, r.Convert(i))
	}
	l.Swap = &lane.Swap{From: 0, To: 2, First: "e0/i0"}
	texts := func() (n int) {
		for _, m := range l.Messages {
			n += len(m)
		}
		return n
	}
	if err := set.Save(t.Context(), l); err != nil || texts() != 3 {
		t.Errorf("%d texts behind a compaction: %v", texts(), err)
	}
	if first, last := l.Span(0, 4); first != "e0/i0" || last != "e0/i3" {
		t.Errorf("from %s to %s", first, last)
	}
	if log, err := thread.On(db).Messages(t.Context(), l.ID); err != nil || len(log) != 5 {
		t.Errorf("%d messages are kept: %v", len(log), err)
	}
	l.Busy++
	l.Unlock()
	set.Rest(now.Add(time.Minute))
	if texts() != 3 {
		t.Error("the texts of a lane in use are gone")
	}
	l.Lock()
	l.Busy--
	l.Unlock()
	set.Rest(now)
	if texts() != 3 {
		t.Error("the texts of a lane that was just used are gone")
	}
	set.Rest(now.Add(time.Minute))
	if texts() != 0 {
		t.Error("the texts are still there")
	}
}

// late is a store that writes what it reports as failed, and that does not answer while it hangs.
type late struct {
	*memstore.Store

	fails, hangs bool
}

func (l *late) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	n, err := l.Store.Apply(ctx, b)
	if l.fails && err == nil {
		return 0, context.DeadlineExceeded
	}
	return n, err
}

func (l *late) Read(ctx context.Context, id string, q store.Query) (store.Snapshot, error) {
	if l.hangs {
		<-ctx.Done()
		return store.Snapshot{}, ctx.Err()
	}
	return l.Store.Read(ctx, id, q)
}

// A write that landed and was reported as failed is no other process's: nothing of it counts twice, whether the next request or the next save
// finds it.
func TestLanded(t *testing.T) {
	t.Parallel()
	for _, found := range []bool{true, false} {
		db, now := &late{Store: memstore.New()}, time.Unix(1_800_000_000, 0)
		set := lane.NewSet(lane.Config{Store: db, Now: func() time.Time { return now }})
		k := &lane.Key{Protocol: wire.Messages, Session: "s", Kind: lane.Main}
		count := func(l *lane.Lane) {
			l.Calls++
			n, _ := lane.Unpack(l.Plugins).Values["count"].(int64)
			l.Plugins = lane.Pack(state.Image{Values: map[string]any{"count": n + 1}})
			if l.Money == nil {
				l.Money = &money.Account{}
			}
			l.Money.Paid.Units++
			l.Events = append(l.Events, compaction.Event{Kind: compaction.EventStarted, Thread: l.ID, AttemptID: fmt.Sprint(l.Calls)})
		}
		l, _ := find(t, set, k, "a")
		for i, fails := range []bool{false, true, false} {
			count(l)
			if i == 2 && found {
				l.Unlock()
				if l, _ = find(t, set, k, "a b c"); l.Calls != 3 {
					t.Errorf("%d calls", l.Calls)
				}
			}
			db.fails = fails
			if err := set.Save(t.Context(), l); (err != nil) != fails {
				t.Fatal(err)
			}
		}
		id := l.ID
		l.Unlock()
		l, _ = find(t, stored(t, db, &now), k, "a b c")
		if n := lane.Unpack(l.Plugins).Values["count"]; l.ID != id || l.Calls != 3 || n != int64(3) || l.Money.Paid.Units != 3 {
			t.Errorf("found %t: %d calls, %v, %v units of %s", found, l.Calls, n, l.Money.Paid.Units, l.ID)
		}
		l.Unlock()
		if log := logOf(t, db, id); len(log) != map[bool]int{false: 1, true: 3}[found] {
			t.Errorf("the log is %v", log)
		}
		if st, _, err := thread.On(db).State(t.Context(), id); err != nil || len(st.Markers) != 0 {
			t.Errorf("%+v %v", st, err)
		}
	}
}

// Messages that are recalled from a store that does not answer are waited for no longer than what else is asked of it.
func TestMessages_hang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := lane.NewSet(lane.Config{Store: &late{Store: memstore.New(), hangs: true}})
		if _, err := set.Messages(t.Context(), "x", 1, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// What a request changed that did not go to the provider is undone: the same again is fresh, and has neither edits nor texts of the first time.
func TestBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	set := lane.NewSet(lane.Config{Now: func() time.Time { return now }})
	k := &lane.Key{Protocol: wire.Messages, Session: "s", Kind: lane.Main}
	l, _ := find(t, set, k, "a")
	l.Answer, l.Edits = []string{wire.AnswerKey([]wire.Out{{Type: wire.TypeText, Text: "b"}})}, []lane.Edit{{Item: 0, Text: "kept"}}
	l.Unlock() // and its answer was delivered
	l, _ = find(t, set, k, "a b c")
	l.Open, l.Edits = true, append(l.Edits, lane.Edit{Item: 2, Text: "gone"})
	l.Messages[2][0].Content[0].Text = "masked"
	l.Back()
	if l.Open || len(l.Hashes) != 1 || len(l.Edits) != 1 || l.Edits[0].Text != "kept" || l.Messages != nil {
		t.Errorf("%+v, messages %v", l.State, l.Messages)
	}
	l.Unlock()
	if l, change := find(t, set, k, "a b c"); change != lane.Grow || !slices.Equal(l.Fresh, []int{1, 2}) || l.Messages[2][0].Text() != "c" {
		t.Errorf("%s, fresh are %v, %v", change, l.Fresh, l.Messages)
	}
}

// ownThreads notes the threads that are read and written.
type ownThreads struct {
	store.Store

	names []string
}

// Read implements store.Store.
func (o *ownThreads) Read(ctx context.Context, id string, q store.Query) (store.Snapshot, error) {
	o.names = append(o.names, id)
	return o.Store.Read(ctx, id, q)
}

// TestOwnThreads: no client of a server with the same store can choose a thread in which the proxy keeps what is its own, and delete it.
func TestOwnThreads(t *testing.T) {
	t.Parallel()
	o := &ownThreads{Store: memstore.New()}
	set := lane.NewSet(lane.Config{Store: o, Now: time.Now, Failed: func(err error) { t.Error(err) }})
	if _, err := set.Secret(t.Context(), []byte("secret")); err != nil {
		t.Fatal(err)
	}
	set.Stored(t.Context(), &lane.Key{Upstream: "u", Credential: "c"}, "id", func(*lane.Stored) bool { return true })
	for _, name := range o.names {
		if utf8.ValidString(name) {
			t.Errorf("a client can have the thread %q", name)
		}
	}
	if len(o.names) != 2 {
		t.Errorf("%q", o.names)
	}
}
