package mortise_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func TestValues(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]any{
		"int":        {3, int64(3)},
		"int8":       {int8(-3), int64(-3)},
		"uint16":     {uint16(300), int64(300)},
		"uint64":     {uint64(math.MaxInt64), int64(math.MaxInt64)},
		"float32":    {float32(0.5), 0.5},
		"strings":    {[]string{"a"}, []any{"a"}},
		"string map": {map[string]string{"b": "2", "a": "1"}, map[string]any{"a": "1", "b": "2"}},
		"nil list":   {[]any(nil), nil},
		"nil map":    {map[string]any(nil), nil},
		"nil bytes":  {[]byte(nil), nil},
		"struct":     {&mortise.VersionRange{Min: 1, Max: 2}, map[string]any{"min": int64(1), "max": int64(2)}},
		"long text":  {strings.Repeat("x", 1<<17), strings.Repeat("x", 1<<17)},
		"long bytes": {make([]byte, 1<<17), make([]byte, 1<<17)},
		"long list":  {make([]any, 1<<17), make([]any, 1<<17)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := mortise.Marshal(&mortise.Update{Value: []any{pair[0]}})
			if err != nil {
				t.Fatal(err)
			}
			var got mortise.Update
			if err := mortise.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Value, []any{pair[1]}) {
				t.Errorf("%.100v, want %.100v", got.Value, pair[1])
			}
		})
	}
}

func TestMarshalRefuses(t *testing.T) {
	t.Parallel()
	cycle := map[string]any{}
	cycle["self"] = cycle
	deep := any(nil)
	for range mortise.MaxDepth {
		deep = []any{deep}
	}
	for name, c := range map[string]struct {
		value any
		want  error
	}{
		"nan":       {math.NaN(), mortise.ErrNumber},
		"infinite":  {math.Inf(1), mortise.ErrNumber},
		"too large": {uint64(math.MaxUint64), mortise.ErrNumber},
		"function":  {func() {}, mortise.ErrValue},
		"struct":    {struct{}{}, mortise.ErrValue},
		"cycle":     {cycle, mortise.ErrDepth},
		"deep":      {deep, mortise.ErrDepth},
	} {
		if _, err := mortise.Marshal(&mortise.ToolCall{Arguments: c.value}); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

func TestEncoderReset(t *testing.T) {
	t.Parallel()
	e := mortise.NewEncoder(make([]byte, 0, 64))
	e.Float(math.NaN())
	if _, err := e.Bytes(); err == nil {
		t.Fatal("NaN was accepted")
	}
	e.Reset()
	e.Int(7)
	if data, err := e.Bytes(); err != nil || !bytes.Equal(data, []byte{7}) {
		t.Errorf("%q, error %v: Reset left something", data, err)
	}
}

func TestUnmarshalReplaces(t *testing.T) {
	t.Parallel()
	event := mortise.Event{Step: 3, Messages: make(mortise.Messages, 2)}
	if err := mortise.Unmarshal([]byte{0x80}, &event); err != nil {
		t.Fatal(err)
	}
	if event.Step != 0 || event.Messages != nil {
		t.Errorf("%+v is left of the old value", event)
	}
}

// TestInputIsCopied guards the buffer that is used again by the next call.
func TestInputIsCopied(t *testing.T) {
	t.Parallel()
	data, err := mortise.Marshal(&mortise.ToolCall{ID: "c1", Arguments: []byte("abc")})
	if err != nil {
		t.Fatal(err)
	}
	var call mortise.ToolCall
	if err := mortise.Unmarshal(data, &call); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if call.ID != "c1" || !reflect.DeepEqual(call.Arguments, []byte("abc")) {
		t.Errorf("%+v changed with the input", call)
	}
}

// TestNoMemoryForClaims measures what a header that lies makes a decoder take.
//
//nolint:paralleltest // it reads how much the whole process has allocated
func TestNoMemoryForClaims(t *testing.T) {
	for path, data := range vectors(t, "bad", 35) {
		if !strings.Contains(path, "huge") {
			continue
		}
		const runs = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			if mortise.Unmarshal(data, fresh(t, path)) == nil {
				t.Fatalf("%s: accepted", path)
			}
		}
		runtime.ReadMemStats(&after)
		if taken := (after.TotalAlloc - before.TotalAlloc) / runs; taken > 4<<10 {
			t.Errorf("%s: %d bytes were taken", path, taken)
		}
	}
}

// FuzzUnmarshal gives the decoders anything. What is accepted must be written
// again, and its bytes must not change any more.
func FuzzUnmarshal(f *testing.F) {
	for _, folder := range []string{".", "bad", "lenient"} {
		for _, data := range vectors(f, folder, 1) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, create := range []func() value{
			func() value { return new(mortise.Description) }, func() value { return new(mortise.Event) },
			func() value { return new(mortise.Reply) }, func() value { return new(mortise.ToolCall) },
			func() value { return new(mortise.ToolResult) }, func() value { return new(mortise.SummarizeRequest) },
			func() value { return new(mortise.Summary) }, func() value { return new(mortise.AdmitRequest) },
			func() value { return new(mortise.Decision) }, func() value { return new(mortise.Notice) },
		} {
			v := create()
			if mortise.Unmarshal(data, v) != nil {
				continue
			}
			first, err := mortise.Marshal(v)
			if err != nil {
				t.Fatalf("%T was accepted and cannot be written: %v", v, err)
			}
			again := create()
			if err := mortise.Unmarshal(first, again); err != nil {
				t.Fatalf("%T was written and is refused: %v", v, err)
			}
			if second, err := mortise.Marshal(again); err != nil || !bytes.Equal(first, second) {
				t.Fatalf("%T: error %v, %q became %q", v, err, first, second)
			}
		}
	})
}

// BenchmarkEvent40 takes an event with 40 messages of 600 bytes. The host's
// codec has a benchmark of the same name and the same event.
func BenchmarkEvent40(b *testing.B) {
	event := &mortise.Event{ABI: 1, Phase: mortise.BeforeInference, Run: mortise.RunIdentity{ThreadID: "t1", RunID: "r1"}, Step: 7, MessagesTotal: 40}
	for range 40 {
		event.Messages = append(event.Messages, mortise.MessagesOf(mortise.Message{
			ID: "m1", Role: mortise.RoleUser, Content: []mortise.ContentBlock{mortise.Text(strings.Repeat("w", 600))},
		})...)
	}
	data, err := mortise.Marshal(event)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		var e mortise.Encoder
		for b.Loop() {
			e.Reset()
			event.MarshalTo(&e)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := mortise.Unmarshal(data, new(mortise.Event)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("roles", func(b *testing.B) {
		b.ReportAllocs()
		input := string(data)
		for b.Loop() {
			var e mortise.Event
			users := 0
			if err := mortise.UnmarshalString(input, &e); err != nil {
				b.Fatal(err)
			}
			for _, m := range e.Messages {
				if m.Role() == mortise.RoleUser {
					users++
				}
			}
			if users != 40 {
				b.Fatal(users)
			}
		}
	})
}
