package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// TestRaw puts a value together from parts, which gives the bytes of the whole.
func TestRaw(t *testing.T) {
	t.Parallel()
	messages := []abi.Message{{ID: "a", Role: abi.RoleUser}, {ID: "b", Metadata: map[string]any{"n": int64(1)}}}
	want, err := wire.MessagePack.Marshal(&abi.SummarizeRequest{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	var parts []wire.Raw
	for i := range messages {
		raw, err := wire.MarshalRaw(&messages[i], 2)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, raw)
	}
	got, err := wire.MessagePack.Marshal(struct {
		ABI          int        `json:"abi"`
		ThreadID     string     `json:"thread_id"`
		Messages     []wire.Raw `json:"messages"`
		BudgetTokens int64      `json:"budget_tokens"`
	}{Messages: parts})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("error %v\n got %q\nwant %q", err, got, want)
	}
	if got, err := wire.MessagePack.Marshal(map[string]any{"v": wire.Raw(nil), "w": wire.Raw{7}}); err != nil || string(got) != "\x82\xa1v\xc0\xa1w\x07" {
		t.Errorf("%q, error %v", got, err)
	}
	if _, err := wire.JSON.Marshal(map[string]any{"v": wire.Raw{7}}); !errors.Is(err, wire.ErrValue) {
		t.Errorf("error %v, want ErrValue: JSON cannot hold MessagePack", err)
	}
}

// TestRawDepth: a part counts the depth at which it will stand.
func TestRawDepth(t *testing.T) {
	t.Parallel()
	deep := any("x")
	for range wire.MaxDepth - 2 {
		deep = []any{deep}
	}
	if _, err := wire.MarshalRaw(deep, 2); err != nil {
		t.Errorf("error %v", err)
	}
	if _, err := wire.MarshalRaw([]any{deep}, 2); !errors.Is(err, wire.ErrValue) {
		t.Errorf("error %v, want ErrValue", err)
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
