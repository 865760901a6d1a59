//go:build wasip1

package main

import (
	"encoding/binary"
	"encoding/json"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u64
func inputLoadU64(offset uint64) uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoadU8(offset uint64) uint32

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env store_u64
func storeU64(offset, v uint64)

//go:wasmimport extism:host/env store_u8
func storeU8(offset uint64, v uint32)

//go:wasmimport extism:host/env output_set
func outputSet(offset, n uint64)

func input() []byte {
	n := int(inputLength())
	in := make([]byte, n)
	i := 0
	for ; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(in[i:], inputLoadU64(uint64(i)))
	}
	for ; i < n; i++ {
		in[i] = byte(inputLoadU8(uint64(i)))
	}
	return in
}

func output(out []byte) {
	at := alloc(uint64(len(out)))
	i := 0
	for ; i+8 <= len(out); i += 8 {
		storeU64(at+uint64(i), binary.LittleEndian.Uint64(out[i:]))
	}
	for ; i < len(out); i++ {
		storeU8(at+uint64(i), uint32(out[i]))
	}
	outputSet(at, uint64(len(out)))
}

type event struct {
	Messages []struct {
		ID      string `json:"id"`
		Role    string `json:"role"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"messages"`
}

type payload struct {
	Assistant int64  `json:"assistant"`
	Last      string `json:"last"`
	Size      int    `json:"size"`
	System    int64  `json:"system"`
	Tool      int64  `json:"tool"`
	User      int64  `json:"user"`
}

type effect struct {
	Type      string  `json:"type"`
	EventType string  `json:"event_type"`
	Payload   payload `json:"payload"`
}

type reply struct {
	Effects []effect `json:"effects"`
}

// hookJSON counts messages by role and finds the last one of the user.
//
//go:wasmexport hook_json
func hookJSON() int32 {
	var e event
	if err := json.Unmarshal(input(), &e); err != nil {
		return 1
	}
	var p payload
	for _, m := range e.Messages {
		switch m.Role {
		case "system":
			p.System++
		case "user":
			p.User++
			p.Last, p.Size = m.ID, 0
			for _, block := range m.Content {
				if block.Type == "text" {
					p.Size += len(block.Text)
				}
			}
		case "assistant":
			p.Assistant++
		case "tool":
			p.Tool++
		}
	}
	out, err := json.Marshal(reply{Effects: []effect{{Type: "emit", EventType: "roles", Payload: p}}})
	if err != nil {
		return 1
	}
	output(out)
	return 0
}
