package mortise_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// fields reads a message by way of each method of its view. It fails when a field of
// Message has no method.
func fields(t *testing.T, v mortise.MessageView) mortise.Message {
	t.Helper()
	var m mortise.Message
	whole := reflect.ValueOf(&m).Elem()
	for i := range whole.NumField() {
		name := whole.Type().Field(i).Name
		method := reflect.ValueOf(v).MethodByName(name)
		if !method.IsValid() {
			t.Fatalf("MessageView has no method %s", name)
		}
		whole.Field(i).Set(method.Call(nil)[0])
	}
	return m
}

func sampleMessages() []mortise.Message {
	return []mortise.Message{
		{ID: "m1", Role: mortise.RoleUser, Content: []mortise.ContentBlock{mortise.Text(strings.Repeat("long ", 100))}},
		{
			ID: strings.Repeat("m", 40), Role: mortise.RoleAssistant, Pinned: true, Visibility: mortise.VisibilityInternal,
			Content:    []mortise.ContentBlock{mortise.Text("a"), {Type: mortise.BlockImage, URL: "u"}, mortise.Text("b")},
			ToolCalls:  []mortise.ToolCall{{ID: "c1", Name: "read", Arguments: map[string]any{"n": int64(300), "f": 0.5, "deep": []any{map[string]any{}}}}},
			ToolCallID: "c0", Metadata: map[string]any{"big": make([]byte, 1<<16+1), "text": strings.Repeat("t", 1<<16+1), "list": make([]any, 20)},
		},
		{},
	}
}

func decodeEvent(t *testing.T, e *mortise.Event) *mortise.Event {
	t.Helper()
	data, err := mortise.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	out := new(mortise.Event)
	if err := mortise.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMessages reads messages as a test gives them and as a host sends them.
func TestMessages(t *testing.T) {
	t.Parallel()
	want := sampleMessages()
	given := &mortise.Event{Messages: mortise.MessagesOf(want...), MessagesTotal: 3}
	for name, e := range map[string]*mortise.Event{"given": given, "sent": decodeEvent(t, given), "sent on": decodeEvent(t, decodeEvent(t, given))} {
		if len(e.Messages) != len(want) || e.MessagesTotal != 3 {
			t.Fatalf("%s: %d messages of %d", name, len(e.Messages), e.MessagesTotal)
		}
		for i, m := range e.Messages {
			if got := m.Message(); !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s: message %d: %+v", name, i, got)
			}
			if got := fields(t, m); !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s: message %d by fields: %+v", name, i, got)
			}
			if got := m.Text(); got != want[i].Text() {
				t.Errorf("%s: message %d: text %q", name, i, got)
			}
		}
		if last, ok := e.Messages.Last(); !ok || last.ID() != "" {
			t.Errorf("%s: last %q, %v", name, last.ID(), ok)
		}
		if err := e.Messages.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoMessages(t *testing.T) {
	t.Parallel()
	var none mortise.Messages
	if _, ok := none.Last(); ok || none.Err() != nil || mortise.MessagesOf() != nil {
		t.Error("no messages are not none")
	}
	if got := fields(t, mortise.MessageView{}); !reflect.DeepEqual(got, mortise.Message{}) {
		t.Errorf("the zero view is %+v", got)
	}
}

// TestBrokenMessages: what is wrong inside of a message is found when it is read, and
// the event says so.
func TestBrokenMessages(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("\x91", mortise.MaxDepth) + "\xc0"
	for name, c := range map[string]struct {
		message string
		says    string
	}{
		"number as role":    {"\x82\xa2id\xa1a\xa4role\x07", "a string"},
		"text as content":   {"\x82\xa2id\xa1a\xa7content\xa1x", "an array"},
		"number as text":    {"\x82\xa2id\xa1a\xa7content\x91\x82\xa4type\xa4text\xa4text\x07", "a string"},
		"text as truth":     {"\x81\xa6pinned\xa4true", "a bool"},
		"number as key":     {"\x82\x01\x01\xa2id\xa1a", "not a string"},
		"number as message": {"\x07", "a map"},
		"deep metadata":     {"\x81\xa8metadata\x81\xa1x" + deep, "nests deeper"},
		"infinite":          {"\x81\xa8metadata\x81\xa1x\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "a finite number"},
		"extension":         {"\x81\xa8metadata\x81\xa1x\xc1", "of the contract"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e mortise.Event
			err := mortise.Unmarshal([]byte("\x81\xa8messages\x92"+c.message+"\x80"), &e)
			if err == nil {
				fields(t, e.Messages[0])
				err = e.Messages.Err()
			}
			var refused *mortise.DecodeError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
}

// TestTruncatedMessages: all of each message must be there, read or not.
func TestTruncatedMessages(t *testing.T) {
	t.Parallel()
	data, err := mortise.Marshal(&mortise.Event{Messages: mortise.MessagesOf(sampleMessages()[0])})
	if err != nil {
		t.Fatal(err)
	}
	for cut := range data {
		if mortise.Unmarshal(data[:cut], new(mortise.Event)) == nil {
			t.Fatalf("the first %d of %d bytes were accepted", cut, len(data))
		}
	}
	for _, claim := range []string{
		"\xdd\xff\xff\xff\xff", "\x91\xdf\xff\xff\xff\xff", "\x91\xdd\xff\xff\xff\xff\xc0", "\x91\x81\xa2id\xdb\xff\xff\xff\xff", "\x92\x80", "\x91\x8f\x80",
		"\x91\xde", "\x91\xdc\x00", "\x91\xda\x00", "\x91\xc6\x00\x00\x00", "\x91\xcb\x00", "\x91\x81\xa2id\xc1",
	} {
		var refused *mortise.DecodeError
		if err := mortise.Unmarshal([]byte("\x81\xa8messages"+claim), new(mortise.Event)); !errors.As(err, &refused) {
			t.Errorf("%q: error %v, want a DecodeError", claim, err)
		}
	}
}

// TestLazyReadsAreCheap guards the reason for views: who looks at roles takes no
// memory for each message.
//
//nolint:paralleltest // it counts what the whole process allocates
func TestLazyReadsAreCheap(t *testing.T) {
	list := make([]mortise.Message, 100)
	for i := range list {
		list[i] = sampleMessages()[0]
	}
	data, err := mortise.Marshal(&mortise.Event{Messages: mortise.MessagesOf(list...)})
	if err != nil {
		t.Fatal(err)
	}
	input, users := string(data), 0
	allocs := testing.AllocsPerRun(20, func() {
		var e mortise.Event
		if err := mortise.UnmarshalString(input, &e); err != nil {
			t.Fatal(err)
		}
		for _, m := range e.Messages {
			if m.Role() == mortise.RoleUser {
				users++
			}
		}
	})
	if allocs > 5 || users == 0 {
		t.Errorf("%v allocations for %d messages, %d of the user", allocs, len(list), users)
	}
}

// FuzzMessages gives views anything: they must agree with the decoder of whole
// messages, and never panic.
func FuzzMessages(f *testing.F) {
	for _, data := range vectors(f, ".", 1) {
		f.Add(data)
	}
	f.Add([]byte("\x81\xa8messages\x92\x81\xa4role\x07\x80"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e mortise.Event
		if mortise.Unmarshal(data, &e) != nil {
			return
		}
		for _, m := range e.Messages {
			alone, err := mortise.Marshal(&mortise.Event{Messages: mortise.Messages{m}})
			if err != nil {
				t.Fatal(err)
			}
			var one mortise.Event
			if err := mortise.Unmarshal(alone, &one); err != nil {
				t.Fatal(err)
			}
			whole := one.Messages[0].Message()
			if one.Messages.Err() != nil {
				fields(t, m)
				continue
			}
			if got := fields(t, one.Messages[0]); !reflect.DeepEqual(got, whole) || one.Messages.Err() != nil {
				t.Fatalf("by fields %+v, whole %+v, error %v", got, whole, one.Messages.Err())
			}
		}
	})
}

func ExampleMessages() {
	e := &mortise.Event{Messages: mortise.MessagesOf(
		mortise.Message{Role: mortise.RoleUser, Content: []mortise.ContentBlock{mortise.Text("Where is it?")}},
		mortise.Message{Role: mortise.RoleAssistant, Content: []mortise.ContentBlock{mortise.Text("In host/pool.go.")}},
	)}
	for _, m := range e.Messages {
		if m.Role() == mortise.RoleUser {
			fmt.Println(m.Text())
		}
	}
	if last, ok := e.Messages.Last(); ok {
		fmt.Println(last.Role())
	}
	// Output:
	// Where is it?
	// assistant
}
