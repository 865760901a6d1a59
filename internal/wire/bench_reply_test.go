package wire_test

import (
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// BenchmarkReply decodes what a hook answers: an effect with a payload of six fields.
func BenchmarkReply(b *testing.B) {
	data, err := wire.MessagePack.Marshal(&abi.Reply{Effects: []abi.Effect{{
		Type: abi.EffectEmit, EventType: "roles",
		Payload: map[string]any{"assistant": 20, "last": "m40", "size": 600, "system": 0, "tool": 0, "user": 20},
	}}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var reply *abi.Reply
		if err := wire.MessagePack.Take(data, &reply); err != nil {
			b.Fatal(err)
		}
	}
}
