package wire_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// FuzzUnmarshal gives both formats anything. What is accepted must survive a
// round trip, and its bytes must not change any more.
func FuzzUnmarshal(f *testing.F) {
	for _, pattern := range []string{"*", "bad/*", "lenient/*"} {
		paths, err := filepath.Glob(folder(pattern))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, filepath.Ext(path) == ".json")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, text bool) {
		format := wire.MessagePack
		if text {
			format = wire.JSON
		}
		for _, target := range []any{
			new(abi.Description), new(abi.Event), new(abi.Reply), new(abi.ToolCall), new(abi.ToolResult),
			new(abi.SummarizeRequest), new(abi.Summary), new(abi.AdmitRequest), new(abi.Decision), new(abi.Notice), new(any),
		} {
			if format.Unmarshal(data, target) == nil {
				settles(t, format, target)
			}
		}
	})
}

func settles(t *testing.T, format wire.Format, value any) {
	t.Helper()
	first, err := format.Marshal(reflect.ValueOf(value).Elem().Interface())
	if err != nil {
		t.Fatalf("%T was accepted and cannot be written: %v", value, err)
	}
	again := reflect.New(reflect.TypeOf(value).Elem()).Interface()
	if err := format.Unmarshal(first, again); err != nil {
		t.Fatalf("%T was written and is refused: %v", value, err)
	}
	second, err := format.Marshal(reflect.ValueOf(again).Elem().Interface())
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%T: error %v, %q became %q", value, err, first, second)
	}
}

// TestRandomValues sends random dynamic values through MessagePack.
func TestRandomValues(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		want := &abi.Reply{Updates: []abi.Update{{Key: "k", Op: abi.OpSet, Value: random(r, 5)}}}
		data, err := wire.MessagePack.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := new(abi.Reply)
		if err := wire.MessagePack.Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%#v became %#v", want, got)
		}
		if cut := r.IntN(len(data)); wire.MessagePack.Unmarshal(data[:cut], got) == nil {
			t.Fatalf("%d of %d bytes were accepted: %q", cut, len(data), data[:cut])
		}
	}
}

func random(r *rand.Rand, depth int) any {
	kinds := 6
	if depth > 0 {
		kinds = 8
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64()) >> r.IntN(64)
	case 3:
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return 0.0
	case 4:
		return string(make([]byte, r.IntN(300)))
	case 5:
		return make([]byte, r.IntN(300))
	case 6:
		list := make([]any, r.IntN(20))
		for i := range list {
			list[i] = random(r, depth-1)
		}
		return list
	default:
		m := map[string]any{}
		for range r.IntN(20) {
			m[string(rune('a'+r.IntN(1000)))] = random(r, depth-1)
		}
		return m
	}
}
