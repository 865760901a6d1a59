package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

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
