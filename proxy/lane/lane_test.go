package lane_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
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

// What is stored is found by another process, and is deleted when it was not used for long.
func TestLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := memstore.New()
	now := time.Unix(1_800_000_000, 0)
	cfg := lane.Config{Log: lane.NewLog(db), Now: func() time.Time { return now }}
	k := &lane.Key{Protocol: wire.Messages, Session: "s", Kind: lane.Main}
	set := lane.NewSet(cfg)
	l, _ := set.Find(ctx, k, request(t, "a"), false)
	id := l.ID
	if err := set.Save(ctx, l, []abi.Message{{ID: "1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("a")}}}); err != nil {
		t.Fatal(err)
	}
	l.Unlock()
	other := lane.NewSet(cfg)
	l, change := other.Find(ctx, k, request(t, "a", "b", "c"), false)
	if change != lane.Grow || l.ID != id {
		t.Errorf("%s %s", change, l.ID)
	}
	l.Unlock()
	if list, err := cfg.Log.Messages(ctx, id, 1, 10); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
	if err := cfg.Log.Trim(ctx, now); err != nil {
		t.Fatal(err)
	}
	if states, _, _ := cfg.Log.Load(ctx, k.Group(), 9); len(states) != 1 {
		t.Error("deleted too early")
	}
	if err := cfg.Log.Trim(ctx, now.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if states, _, _ := cfg.Log.Load(ctx, k.Group(), 9); len(states) != 0 {
		t.Error("not deleted")
	}
	first, _ := cfg.Log.Secret(ctx, []byte("one"))
	second, _ := cfg.Log.Secret(ctx, []byte("two"))
	if string(first) != "one" || string(second) != "one" {
		t.Errorf("%s %s", first, second)
	}
}
