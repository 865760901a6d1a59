package wire_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

func formats() []wire.Format { return []wire.Format{wire.MessagePack, wire.JSON} }

func TestDetect(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]wire.Format{
		`{"name":"x"}`: wire.JSON, "\n\t {}": wire.JSON, "": wire.MessagePack, " \n": wire.MessagePack,
		"\x81\xa4name": wire.MessagePack, "[1]": wire.MessagePack, "\x7b": wire.JSON,
	} {
		if got := wire.Detect([]byte(input)); got != want {
			t.Errorf("Detect(%q) = %s, want %s", input, got, want)
		}
	}
}

// TestAnswersAreKept guards the difference between an empty answer and none.
func TestAnswersAreKept(t *testing.T) {
	t.Parallel()
	for _, f := range formats() {
		for _, v := range []any{int64(0), false, "", []any{}, map[string]any{}} {
			data, err := f.Marshal(&abi.ToolCall{Arguments: v})
			if err != nil {
				t.Fatal(err)
			}
			var got abi.ToolCall
			if err := f.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Arguments, v) {
				t.Errorf("%s: %#v became %#v", f, v, got.Arguments)
			}
		}
	}
}

// TestLibraryReadsIt checks the bytes with a decoder that shares no code of ours.
func TestLibraryReadsIt(t *testing.T) {
	t.Parallel()
	for _, v := range vectors() {
		data, err := wire.MessagePack.Marshal(v.value)
		if err != nil {
			t.Fatal(err)
		}
		d := msgpack.NewDecoder(strings.NewReader(string(data)))
		d.SetCustomStructTag("json")
		got := fresh(v.name)
		if err := d.Decode(got); err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		// As text, because the library gives integers of many types.
		if got, want := string(indented(t, got)), string(indented(t, v.value)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", v.name, got, want)
		}
	}
}

func TestUnmarshalReplaces(t *testing.T) {
	t.Parallel()
	for f, empty := range map[wire.Format]string{wire.MessagePack: "\x80", wire.JSON: "{}"} {
		reply := abi.Reply{Updates: []abi.Update{{Key: "old"}}, Gate: &abi.GateDecision{}}
		if err := f.Unmarshal([]byte(empty), &reply); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(reply, abi.Reply{}) {
			t.Errorf("%s: %+v is left of the old value", f, reply)
		}
	}
}

func TestUnmarshalTarget(t *testing.T) {
	t.Parallel()
	var none *abi.Reply
	for _, target := range []any{nil, abi.Reply{}, none} {
		if err := wire.MessagePack.Unmarshal([]byte("\x80"), target); err == nil {
			t.Errorf("%T was accepted", target)
		}
	}
	if err := wire.Format("xml").Unmarshal(nil, &abi.Reply{}); err == nil {
		t.Error("an unknown format was accepted")
	}
	if _, err := wire.Format("xml").Marshal(&abi.Reply{}); err == nil {
		t.Error("an unknown format was accepted")
	}
}

func TestMarshalRefuses(t *testing.T) {
	t.Parallel()
	cycle := map[string]any{}
	cycle["self"] = cycle
	pointer := new(any)
	*pointer = pointer
	deep := any(nil)
	for range wire.MaxDepth {
		deep = []any{deep}
	}
	for name, v := range map[string]any{
		"nan": math.NaN(), "infinite": math.Inf(-1), "channel": make(chan int), "cycle": cycle, "pointer cycle": pointer, "deep": deep,
	} {
		for _, f := range formats() {
			if _, err := f.Marshal(&abi.ToolCall{Arguments: v}); !errors.Is(err, wire.ErrValue) {
				t.Errorf("%s: %s: error %v, want ErrValue", f, name, err)
			}
		}
	}
	for name, v := range map[string]any{
		"beyond int64": uint64(math.MaxUint64), "unexported fields": time.Time{}, "number keys": map[int]any{},
	} {
		if _, err := wire.MessagePack.Marshal(&abi.ToolCall{Arguments: v}); !errors.Is(err, wire.ErrValue) {
			t.Errorf("%s: error %v, want ErrValue", name, err)
		}
	}
}

func TestTextIsMended(t *testing.T) {
	t.Parallel()
	var got abi.Summary
	if err := wire.MessagePack.Unmarshal([]byte("\x81\xa4text\xa5cut \xc3"), &got); err != nil {
		t.Fatal(err)
	}
	if want := "cut \uFFFD"; got.Text != want {
		t.Errorf("text %q, want %q", got.Text, want)
	}
	for _, f := range formats() {
		data, err := f.Marshal(&abi.ToolCall{ID: "a\xff", Arguments: map[string]any{"k\xff": "v\xff"}})
		if err != nil {
			t.Fatal(err)
		}
		var call abi.ToolCall
		if err := f.Unmarshal(data, &call); err != nil {
			t.Fatal(err)
		}
		if call.ID != "a\uFFFD" || !reflect.DeepEqual(call.Arguments, map[string]any{"k\uFFFD": "v\uFFFD"}) {
			t.Errorf("%s: %+v is not repaired", f, call)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var call abi.ToolCall
	input := `{"ID":"wrong case","id":"c","later":[1,{}],"kind":null,"arguments":[1,1.0,1e2,-0,12345678901234567890,"\u00e9\ud800"]}`
	if err := wire.JSON.Unmarshal([]byte(input), &call); err != nil {
		t.Fatal(err)
	}
	want := abi.ToolCall{ID: "c", Arguments: []any{int64(1), 1.0, 100.0, int64(0), 12345678901234567890.0, "é\uFFFD"}}
	if !reflect.DeepEqual(call, want) {
		t.Errorf("%#v, want %#v", call, want)
	}
	var event abi.Event
	if err := wire.JSON.Unmarshal([]byte(`{"step":2.0,"messages_total":1e1}`), &event); err != nil || event.Step != 2 || event.MessagesTotal != 10 {
		t.Errorf("step %d, total %d, error %v", event.Step, event.MessagesTotal, err)
	}
}

func TestBadJSON(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{
		"empty": "", "broken": `{"updates":[}`, "trailing": `{} {}`, "array": `[]`, "text": `"{}"`,
		"key twice": `{"updates":[{"key":"a","key":"b"}]}`, "key twice in value": `{"updates":[{"value":{"a":1,"a":2}}]}`,
		"wrong type": `{"updates":[{"key":1}]}`, "number too large": `{"updates":[{"value":1e999}]}`,
		"deep":         `{"updates":[{"value":` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `}]}`,
		"very deep":    strings.Repeat("[", 1<<20),
		"many values":  `{"updates":[{"value":[` + strings.Repeat("0,", wire.MaxValues) + `0]}]}`,
		"open string":  `{"updates":"`,
		"raw new line": "{\"later\":\"\n\"}",
	} {
		var refused *wire.DecodeError
		if err := wire.JSON.Unmarshal([]byte(input), &abi.Reply{}); !errors.As(err, &refused) {
			t.Errorf("%s: error %v, want a DecodeError", name, err)
		}
	}
}

// TestErrors shows what an operator reads. No error holds content.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format wire.Format
		input  string
		want   string
	}{
		{wire.MessagePack, "\x81\xa7effects\x91\x82\xa4type\xa4emit\xa8messages\x91\x81\xa4role\x07", "wire: msgpack: byte 37: effects[0].messages[0].role: not a string"},
		{wire.MessagePack, "\xdf\x80\x00\x00\x00", "wire: msgpack: byte 0: declares 2147483648 entries where 0 bytes are left"},
		{wire.MessagePack, "\x82\xa4gate\xc0\xa4gate\xc0", "wire: msgpack: byte 7: gate: comes twice"},
		{wire.JSON, `{"gate":{"action":"block","result":{"status":5}}}`, "wire: json: gate.result.status: not a string"},
		{wire.JSON, `{"gate":secret}`, "wire: json: byte 9: not valid JSON"},
	} {
		err := c.format.Unmarshal([]byte(c.input), &abi.Reply{})
		if err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestValuesAreBounded(t *testing.T) {
	t.Parallel()
	input := []byte("\x81\xa7updates\xdd\x00\x10\x00\x00" + strings.Repeat("\x80", 1<<20))
	var refused *wire.DecodeError
	if err := wire.MessagePack.Unmarshal(input, &abi.Reply{}); !errors.As(err, &refused) {
		t.Errorf("error %v, want a DecodeError", err)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	type level string
	got, err := wire.Value(map[string]any{
		"int": 3, "uint": uint8(4), "float": float32(0.5), "list": []string{"a"}, "map": map[level]int{"b": 1}, "named": level("low"),
		"struct": abi.VersionRange{Min: 1, Max: 2}, "nil": (*int)(nil), "bytes": []byte{1},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"int": int64(3), "uint": int64(4), "float": 0.5, "list": []any{"a"}, "map": map[string]any{"b": int64(1)}, "named": "low",
		"struct": map[string]any{"min": int64(1), "max": int64(2)}, "nil": nil, "bytes": []byte{1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, want %#v", got, want)
	}
	if _, err := wire.Value(func() {}); !errors.Is(err, wire.ErrValue) {
		t.Errorf("error %v, want ErrValue", err)
	}
}

// TestConcurrent shares the pools between goroutines; run it with -race.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	for _, v := range vectors() {
		want, err := wire.MessagePack.Marshal(v.value)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				got := fresh(v.name)
				if err := wire.MessagePack.Unmarshal(want, got); err != nil {
					t.Fatal(err)
				}
				again, err := wire.MessagePack.Marshal(got)
				if err != nil || !bytes.Equal(again, want) {
					t.Errorf("error %v, %q became %q", err, want, again)
				}
			})
		}
	}
}
