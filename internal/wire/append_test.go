package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/mortise-dev/mortise/internal/wire"
)

// TestAppend: parts that are appended are what Marshal and the library write of the whole.
func TestAppend(t *testing.T) {
	t.Parallel()
	same := func(got []byte, v any) {
		t.Helper()
		want, err := wire.MessagePack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var library bytes.Buffer
		e := msgpack.NewEncoder(&library)
		e.SetSortMapKeys(true)
		e.UseCompactInts(true)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || utf8.Valid(fmt.Append(nil, v)) && !bytes.Equal(got, library.Bytes()) {
			t.Errorf("\n got %.60q\nwant %.60q\n and %.60q", got, want, library.Bytes())
		}
	}
	for bits := range 64 {
		for _, v := range []int64{1<<bits - 1, 1 << bits, 1<<bits + 1, -1 << bits, -1<<bits - 1, -1<<bits + 1, math.MinInt64, math.MaxInt64} {
			same(wire.AppendInt(nil, v), v)
		}
	}
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		same(wire.AppendString(nil, strings.Repeat("x", n)), strings.Repeat("x", n))
		same(append(wire.AppendBinary(nil, n), make([]byte, n)...), make([]byte, n))
		list := wire.AppendArray(nil, n)
		for range n {
			list = wire.AppendInt(list, 7)
		}
		all := make([]any, n)
		for i := range all {
			all[i] = int64(7)
		}
		same(list, all)
		object, err := wire.AppendValue(nil, map[string]any{"k": all}, 0)
		if err != nil {
			t.Fatal(err)
		}
		same(append(wire.AppendString(wire.AppendMap(nil, 1), "k"), list...), map[string]any{"k": all})
		same(object, map[string]any{"k": all})
	}
	many := map[string]any{}
	for i := range 16 {
		many[string(rune('a'+i))] = nil
	}
	packed := wire.AppendMap(nil, 16)
	for i := range 16 {
		packed = append(wire.AppendString(packed, string(rune('a'+i))), 0xc0)
	}
	same(packed, many)
	same(wire.AppendString(nil, "a\xffb"), "a\xffb")
	deep := any(int64(1))
	for range wire.MaxDepth - 1 {
		deep = []any{deep}
	}
	if _, err := wire.AppendValue(nil, deep, 1); err != nil {
		t.Error(err)
	}
	if _, err := wire.AppendValue(nil, deep, 2); err == nil {
		t.Error("a value beyond the depth was written")
	}
}
