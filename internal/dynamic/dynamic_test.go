package dynamic_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/internal/dynamic"
)

func TestOf(t *testing.T) {
	t.Parallel()
	in := struct {
		N    int            `json:"n"`
		F    float64        `json:"f"`
		Big  uint64         `json:"big"`
		List []map[int]bool `json:"list"`
		None *int           `json:"none"`
	}{N: 1 << 60, F: 1.5, Big: math.MaxUint64, List: []map[int]bool{{7: true}}}
	want := map[string]any{
		"n": int64(1 << 60), "f": 1.5, "big": float64(math.MaxUint64), "list": []any{map[string]any{"7": true}}, "none": nil,
	}
	if got, err := dynamic.Of(in); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v", got, err)
	}
	if _, err := dynamic.Of(make(chan int)); err == nil {
		t.Error("a channel is a value")
	}
	var out any
	if err := dynamic.Decode([]byte(`[1e999, 2]`), &out); err != nil || !reflect.DeepEqual(dynamic.Numbers(out), []any{"1e999", int64(2)}) {
		t.Errorf("got %#v, %v", out, err)
	}
}
