package guest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/wire"
)

// open opens a guest that speaks MessagePack.
func open(tb testing.TB) *guest.Guest {
	tb.Helper()
	return openOn(tb, &module{})
}

// openOn opens a guest on a module that gets its exports here.
func openOn(tb testing.TB, m *module) *guest.Guest {
	tb.Helper()
	out, err := wire.MessagePack.Marshal(description())
	if err != nil {
		tb.Fatal(err)
	}
	m.exports = map[string]func([]byte) ([]byte, error){
		abi.ExportDescribe: answers(out, nil),
		"nothing":          answers(nil, nil),
	}
	g, err := guest.Open(tb.Context(), m)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// same expects an event to be encoded as if nothing were kept, but for the index.
func same(t *testing.T, g *guest.Guest, e *abi.Event) {
	t.Helper()
	want, err := wire.MessagePack.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Messages) > 0 {
		got = withoutIndex(t, got, e.Messages)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

// withoutIndex takes the index out of an event with messages and checks what it says.
func withoutIndex(t *testing.T, data []byte, messages []abi.Message) []byte {
	t.Helper()
	index := wire.AppendBinary(wire.AppendString(nil, abi.FieldMessageIndex), abi.MessageMarkSize*len(messages))
	at := bytes.Index(data, index)
	if at < 0 {
		t.Fatalf("%q is not in %q", index, data)
	}
	marks := data[at+len(index):][:abi.MessageMarkSize*len(messages)]
	roles := map[abi.Role]byte{abi.RoleSystem: abi.MarkSystem, abi.RoleUser: abi.MarkUser, abi.RoleAssistant: abi.MarkAssistant, abi.RoleTool: abi.MarkTool}
	for i := range messages {
		one, err := wire.MessagePack.Marshal(&messages[i])
		if err != nil {
			t.Fatal(err)
		}
		want := binary.LittleEndian.AppendUint32(nil, uint32(len(one)))
		want = append(want, roles[messages[i].Role], 0, 0, 0)
		if got := marks[i*abi.MessageMarkSize:][:abi.MessageMarkSize]; !bytes.Equal(got, want) {
			t.Errorf("message %d: mark %v, want %v", i, got, want)
		}
	}
	rest := append(bytes.Clone(data[:at]), data[at+len(index)+len(marks):]...)
	fields, wide := int(rest[0]&0x0f), 1
	if rest[0] == 0xde {
		fields, wide = int(binary.BigEndian.Uint16(rest[1:])), 3
	}
	return append(wire.AppendMap(nil, fields-1), rest[wide:]...)
}

func fullMessage() abi.Message {
	return abi.Message{
		ID: "m1", Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("one"), {Type: abi.BlockImage, URL: "u"}},
		ToolCalls: []abi.ToolCall{{ID: "c1", Name: "read", Kind: abi.ToolRead, Arguments: map[string]any{
			"path": "a", "lines": []any{int64(1), 2.5}, "deep": map[string]any{"x": nil},
		}}},
		ToolCallID: "c0", Visibility: abi.VisibilityInternal, Pinned: true, Metadata: map[string]any{"k": true, "n": 0.0},
	}
}

func fullEvent() *abi.Event {
	return &abi.Event{
		ABI: 1, Phase: abi.AfterToolExecute, Run: abi.RunIdentity{
			ThreadID: "t", RunID: "r", ParentRunID: "p", AgentID: "a", DispatchID: "d", SessionID: "s", Mode: abi.RunResume, Adapter: "a2a",
			Origin: "agent", ParentThreadID: "t0", SenderID: "u", TransportRequestID: "q", DispatchIDHint: "h",
		},
		NowMS: 1700000000000, Step: 2, Messages: []abi.Message{fullMessage(), {ID: "m2", Role: abi.RoleUser}}, MessagesFrom: 3, MessagesTotal: 5,
		State:    map[string]any{"s": int64(1)},
		Request:  &abi.InferenceRequest{Model: "m", MaxTokens: new(int64(3)), Tools: []abi.Tool{{Name: "n"}}, System: "s"},
		Response: &abi.Response{Model: "m", Message: fullMessage(), Usage: &abi.Usage{TotalTokens: 3}},
		Call:     &abi.ToolCall{ID: "c", Name: "n", IdempotencyKey: "m/c"}, RewrittenBy: []string{"x", "y"}, Result: &abi.ToolResult{Status: abi.ToolSuccess}, ResultMessageID: "m9",
		Notices: []abi.Notice{{Kind: abi.NoticeCustom}}, Action: &abi.Action{Key: "act"},
		Effect: &abi.Effect{Type: abi.EffectEmit}, Compaction: &abi.Compaction{ID: "c", Survival: new(0.5)},
		End: &abi.RunEnding{Termination: abi.TerminationNatural, Usage: &abi.Usage{TotalTokens: 3}}, Config: map[string]any{"limit": int64(3)},
	}
}

// TestEncodeEvent: an event is encoded as wire does it, the first time and again. It
// fails when the contract gets a field that the copy does not have.
func TestEncodeEvent(t *testing.T) {
	t.Parallel()
	e := fullEvent()
	for _, part := range []any{*e, e.Run} { // both are encoded by hand
		for f, v := range reflect.ValueOf(part).Fields() {
			if v.IsZero() {
				t.Errorf("field %s of %T is not set: set it, so that it is compared", f.Name, part)
			}
		}
	}
	g := open(t)
	for range 3 {
		same(t, g, e)
	}
	if n, _ := guest.CacheSize(g); n != 2 {
		t.Errorf("%d encodings are kept, want 2", n)
	}
}

// TestNeverStale changes a message under its id in every way, in place too.
func TestNeverStale(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *abi.Message){
		"masked":           func(m *abi.Message) { m.Content = []abi.ContentBlock{abi.Text("[masked]")} },
		"masked in place":  func(m *abi.Message) { m.Content[0].Text = "[masked]" },
		"block in place":   func(m *abi.Message) { m.Content[1].Title = "t" },
		"block less":       func(m *abi.Message) { m.Content = m.Content[:1] },
		"role":             func(m *abi.Message) { m.Role = abi.RoleUser },
		"unpinned":         func(m *abi.Message) { m.Pinned = false },
		"visible":          func(m *abi.Message) { m.Visibility = "" },
		"answers another":  func(m *abi.Message) { m.ToolCallID = "c7" },
		"call renamed":     func(m *abi.Message) { m.ToolCalls[0].Name = "write" },
		"call's key":       func(m *abi.Message) { m.ToolCalls[0].IdempotencyKey = "k" },
		"call resumed":     func(m *abi.Message) { m.ToolCalls[0].Resume = &abi.Resume{TicketID: "t"} },
		"call's kind":      func(m *abi.Message) { m.ToolCalls[0].Kind = "" },
		"call's id":        func(m *abi.Message) { m.ToolCalls[0].ID = "c2" },
		"no call":          func(m *abi.Message) { m.ToolCalls = nil },
		"no arguments":     func(m *abi.Message) { m.ToolCalls[0].Arguments = nil },
		"argument changed": func(m *abi.Message) { arguments(m)["path"] = "b" },
		"argument's type":  func(m *abi.Message) { arguments(m)["path"] = int64(1) },
		"argument gone":    func(m *abi.Message) { delete(arguments(m), "path") },
		"argument renamed": func(m *abi.Message) { delete(arguments(m), "path"); arguments(m)["file"] = "a" },
		"deep":             func(m *abi.Message) { object(arguments(m)["deep"])["x"] = false },
		"deep in a list":   func(m *abi.Message) { list(arguments(m)["lines"])[0] = int64(2) },
		"integer as float": func(m *abi.Message) { list(arguments(m)["lines"])[0] = 1.0 },
		"nil list":         func(m *abi.Message) { arguments(m)["lines"] = []any(nil) },
		"empty list":       func(m *abi.Message) { arguments(m)["lines"] = []any{} },
		"nil map":          func(m *abi.Message) { arguments(m)["deep"] = map[string]any(nil) },
		"foreign type":     func(m *abi.Message) { arguments(m)["path"] = []string{"a"} },
		"metadata":         func(m *abi.Message) { m.Metadata["k"] = false },
		"minus zero":       func(m *abi.Message) { m.Metadata["n"] = math.Copysign(0, -1) },
		"no metadata":      func(m *abi.Message) { m.Metadata = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, e := open(t), &abi.Event{Messages: []abi.Message{fullMessage()}}
			same(t, g, e)
			change(&e.Messages[0])
			same(t, g, e)
			same(t, g, e)
			e.Messages[0] = fullMessage()
			same(t, g, e)
		})
	}
}

// TestNeverStalePlain does so with a message that holds nothing but texts, which are
// compared at a glance.
func TestNeverStalePlain(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("one ", 3)
	for name, change := range map[string]func(m *abi.Message){
		"masked":          func(m *abi.Message) { m.Content = []abi.ContentBlock{abi.Text("[masked]")} },
		"masked in place": func(m *abi.Message) { m.Content[0].Text = "[masked]" },
		"same length":     func(m *abi.Message) { m.Content[0].Text = strings.Repeat("two ", 3) },
		"cut in place":    func(m *abi.Message) { m.Content[0].Text = text[:4] },
		"moved in place":  func(m *abi.Message) { m.Content[0].Text = text[1:] },
		"block in place":  func(m *abi.Message) { m.Content[1].Title = "t" },
		"blocks swapped":  func(m *abi.Message) { m.Content[0], m.Content[1] = m.Content[1], m.Content[0] },
		"block less":      func(m *abi.Message) { m.Content = m.Content[:1] },
		"no content":      func(m *abi.Message) { m.Content = nil },
		"a copy":          func(m *abi.Message) { m.Content = slices.Clone(m.Content) },
		"a copied text":   func(m *abi.Message) { m.Content[0].Text = strings.Clone(text) },
		"role":            func(m *abi.Message) { m.Role = abi.RoleUser },
		"pinned":          func(m *abi.Message) { m.Pinned = true },
		"hidden":          func(m *abi.Message) { m.Visibility = abi.VisibilityInternal },
		"answers another": func(m *abi.Message) { m.ToolCallID = "c7" },
		"a call":          func(m *abi.Message) { m.ToolCalls = []abi.ToolCall{{ID: "c"}} },
		"metadata":        func(m *abi.Message) { m.Metadata = map[string]any{"k": false} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, e := open(t), &abi.Event{Messages: []abi.Message{
				{ID: "m0", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("before")}},
				{ID: "m1", Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text), {Type: abi.BlockImage, URL: "u"}}},
				{ID: "m2", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("behind")}},
			}}
			same(t, g, e)
			same(t, g, e)
			change(&e.Messages[1])
			for range 3 {
				same(t, g, e)
			}
		})
	}
}

func arguments(m *abi.Message) map[string]any { return object(m.ToolCalls[0].Arguments) }

func object(v any) map[string]any { return v.(map[string]any) } //nolint:errcheck,forcetypeassert // the test's own value

func list(v any) []any { return v.([]any) } //nolint:errcheck,forcetypeassert // the test's own value

// TestValuesThatCannotBeCompared are encoded anew each time.
func TestValuesThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	g, shared := open(t), []string{"a"}
	e := &abi.Event{Messages: []abi.Message{{ID: "m", Metadata: map[string]any{"list": shared}}, {Role: abi.RoleUser}}}
	same(t, g, e)
	shared[0] = "b"
	same(t, g, e)
	if n, _ := guest.CacheSize(g); n != 0 {
		t.Errorf("%d encodings are kept, want none: one cannot be compared, the other has no id", n)
	}
}

// TestMessagesRefused: a message that cannot be encoded is named, and is not kept.
func TestMessagesRefused(t *testing.T) {
	t.Parallel()
	deep := any("x")
	for range wire.MaxDepth - 3 { // with event, array, message and metadata one too many
		deep = []any{deep}
	}
	for name, v := range map[string]any{"deep": deep, "not a number": math.NaN(), "channel": make(chan int)} {
		g, e := open(t), &abi.Event{Messages: []abi.Message{{ID: "a"}, {ID: "b", Metadata: map[string]any{"v": v}}}}
		for range 2 {
			if _, err := g.Encode(e); !errors.Is(err, wire.ErrValue) || !strings.Contains(err.Error(), "messages[1]") {
				t.Errorf("%s: error %v, want ErrValue of messages[1]", name, err)
			}
		}
		if _, err := wire.MessagePack.Marshal(e); !errors.Is(err, wire.ErrValue) {
			t.Errorf("%s: the codec takes it: %v", name, err)
		}
	}
}

// TestCacheIsBounded shows more messages than are kept, also some of them often.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	g := open(t)
	for i := range 3 * guest.MaxCached {
		size := 100
		if i%8 == 0 {
			size = 20_000
		}
		e := &abi.Event{Messages: []abi.Message{
			{ID: "often", Content: []abi.ContentBlock{abi.Text("always here")}},
			{ID: fmt.Sprint(i), Content: []abi.ContentBlock{abi.Text(strings.Repeat("x", size))}},
		}}
		if err := g.Call(t.Context(), "nothing", e, new(abi.Reply)); err != nil {
			t.Fatal(err)
		}
	}
	n, size := guest.CacheSize(g)
	if n > guest.MaxCached || size > guest.MaxCachedBytes || size < guest.MaxCachedBytes/2 {
		t.Errorf("%d encodings of %d bytes are kept", n, size)
	}
	if there, room := guest.CacheRecount(g); there != n || room != size {
		t.Errorf("%d encodings of %d bytes are there, %d of %d are counted", there, room, n, size)
	}
	huge := &abi.Event{Messages: []abi.Message{{ID: "huge", Content: []abi.ContentBlock{abi.Text(strings.Repeat("x", guest.MaxCachedBytes))}}}}
	same(t, g, huge)
	if now, _ := guest.CacheSize(g); now != n {
		t.Errorf("%d encodings are kept after a huge message, %d before", now, n)
	}
}

// TestCacheConcurrently shows messages with the same ids in several threads of
// conversation, and two texts under one id in each.
func TestCacheConcurrently(t *testing.T) {
	t.Parallel()
	g := open(t)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for round := range 50 {
				e := &abi.Event{Run: abi.RunIdentity{ThreadID: fmt.Sprint("t", n%4)}}
				for id := range 20 {
					e.Messages = append(e.Messages, abi.Message{ID: fmt.Sprint(id), Content: []abi.ContentBlock{abi.Text(fmt.Sprint(n, (round+id)%2))}})
				}
				same(t, g, e)
			}
		})
	}
	wg.Wait()
}

// BenchmarkEncodeEvent encodes an event with 40 messages of 600 bytes: cold, that
// is with messages that were never shown; warm; and as JSON.
func BenchmarkEncodeEvent(b *testing.B) {
	e := &abi.Event{ABI: 1, Phase: abi.BeforeInference, Run: abi.RunIdentity{ThreadID: "t1", RunID: "r1"}, Step: 7, MessagesTotal: 40}
	for i := range 40 {
		e.Messages = append(e.Messages, abi.Message{
			ID: fmt.Sprintf("m%d", i), Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(strings.Repeat("w", 600))},
		})
	}
	g, none := openOn(b, &module{deaf: true}), new(abi.Reply)
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			e.Run.ThreadID = fmt.Sprint(n)
			if err := g.Call(b.Context(), "nothing", e, none); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("warm", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := g.Call(b.Context(), "nothing", e, none); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.JSON.Marshal(e); err != nil {
				b.Fatal(err)
			}
		}
	})
}
