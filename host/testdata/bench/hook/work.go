//go:build wasip1

package main

import (
	"encoding/json"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"unsafe"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport mortise:host/1 input_read
func inputRead(to unsafe.Pointer)

//go:wasmimport mortise:host/1 output_write
func outputWrite(from unsafe.Pointer, n uint32)

func input() []byte {
	runtime.Gosched() // the collector gets its turn, as in the SDK
	in := make([]byte, inputLength())
	if len(in) > 0 {
		inputRead(unsafe.Pointer(unsafe.SliceData(in)))
	}
	return in
}

func output(out []byte) int32 {
	outputWrite(unsafe.Pointer(unsafe.SliceData(out)), uint32(len(out)))
	return 0
}

//go:wasmexport noop
func noop() int32 { return 0 }

//go:wasmexport echo
func echo() int32 { return output(input()) }

// message is what the JSON work reads.
type message struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// workJSON decodes an event and encodes it again.
//
//go:wasmexport work_json
func workJSON() int32 {
	var e struct {
		Messages []message `json:"messages"`
	}
	if json.Unmarshal(input(), &e) != nil {
		return 1
	}
	out, err := json.Marshal(e)
	if err != nil {
		return 1
	}
	return output(out)
}

// workMsgpack decodes all of an event and encodes it again.
//
//go:wasmexport work_msgpack
func workMsgpack() int32 {
	var e mortise.Event
	if mortise.Unmarshal(input(), &e) != nil {
		return 1
	}
	list := make([]mortise.Message, len(e.Messages))
	for i, m := range e.Messages {
		list[i] = m.Message()
	}
	e.Messages = mortise.MessagesOf(list...)
	out, err := mortise.Marshal(&e)
	if err != nil {
		return 1
	}
	return output(out)
}

// workText counts the words of a text.
//
//go:wasmexport work_text
func workText() int32 {
	counts := map[string]int{}
	for word := range strings.FieldsSeq(string(input())) {
		counts[strings.ToLower(word)]++
	}
	lines := make([]string, 0, len(counts))
	for word, n := range counts {
		lines = append(lines, word+" "+strconv.Itoa(n))
	}
	sort.Strings(lines)
	return output([]byte(strings.Join(lines, "\n")))
}
