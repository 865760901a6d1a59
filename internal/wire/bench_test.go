package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/mortise-dev/mortise/abi"
)

func event40() *abi.Event {
	e := &abi.Event{ABI: 1, Phase: abi.BeforeInference, Run: abi.RunIdentity{ThreadID: "t1", RunID: "r1"}, Step: 7, MessagesTotal: 40}
	for i := range 40 {
		e.Messages = append(e.Messages, abi.Message{
			ID: fmt.Sprintf("m%d", i), Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(strings.Repeat("w", 600))},
		})
	}
	return e
}

// BenchmarkEvent40 sends an event with 40 messages of 600 bytes each way. The
// bare libraries are measured alongside; they check nothing.
func BenchmarkEvent40(b *testing.B) {
	e := event40()
	for _, f := range formats() {
		data, err := f.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("encode/"+string(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Marshal(e); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("decode/"+string(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Unmarshal(data, new(abi.Event)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	packed, err := msgpack.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	bare(b, "encode/bare_msgpack", func() error { _, err := msgpack.Marshal(e); return err })
	bare(b, "decode/bare_msgpack", func() error { return msgpack.Unmarshal(packed, new(abi.Event)) })
	bare(b, "encode/bare_json", func() error { _, err := json.Marshal(e); return err })
	bare(b, "decode/bare_json", func() error { return json.Unmarshal(text, new(abi.Event)) })
}

func bare(b *testing.B, name string, do func() error) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := do(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
