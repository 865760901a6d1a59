package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// TestTake decodes what Unmarshal does, and shares memory where Unmarshal does not.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, f := range append(formats(), "") {
		for _, v := range []any{"short", strings.Repeat("long ", 2000)} {
			data, err := f.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			var kept, taken any
			if err := errors.Join(f.Unmarshal(data, &kept), f.Take(bytes.Clone(data), &taken)); err != nil {
				t.Fatal(err)
			}
			clear(data) // Unmarshal keeps nothing of it
			if kept != v || taken != v {
				t.Errorf("%s: %.20q and %.20q, want %.20q", f, kept, taken, v)
			}
		}
		if err := f.Take([]byte{0xc1}, new(any)); err == nil {
			t.Errorf("%s: a broken input was taken", f)
		}
	}
}

func TestLend(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, f := range append(formats(), "") {
		want, err := f.Marshal(fullReply())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			err := f.Lend(fullReply(), func(data []byte) error {
				if !bytes.Equal(data, want) {
					t.Errorf("%s: got %q, want %q", f, data, want)
				}
				return stop
			})
			if !errors.Is(err, stop) {
				t.Errorf("%s: error %v, want that of the function", f, err)
			}
		}
		if err := f.Lend(make(chan int), func([]byte) error { panic("lent") }); !errors.Is(err, wire.ErrValue) {
			t.Errorf("%s: error %v, want ErrValue", f, err)
		}
	}
}

func fullReply() *abi.Reply {
	return &abi.Reply{Updates: []abi.Update{{Key: "k", Op: abi.OpAdd, Value: int64(3)}}, Gate: &abi.GateDecision{Action: abi.GateAllow}}
}
