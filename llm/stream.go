package llm

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
)

// Streamer is what a [Model] may have besides Infer: it hands out an answer while
// it comes. Stream calls emit from one goroutine, and returns when the answer is
// over, ctx is done, or emit returns false. Text that was emitted before an error is
// not lost: [Client] continues from it where it can.
type Streamer interface {
	Stream(ctx context.Context, r Request, emit func(Delta) bool) error
}

// DeltaType is what a [Delta] adds to an answer.
type DeltaType string

// Types of deltas. The last three come from [Client] alone.
const (
	// DeltaText adds Text to the answer.
	DeltaText DeltaType = "text"
	// DeltaReasoning adds Text to a thinking block, DeltaSignature ends that block
	// with the provider's signature, in Text. A signature that follows no thinking is a
	// block without text.
	DeltaReasoning DeltaType = "reasoning"
	DeltaSignature DeltaType = "signature"
	// DeltaCallStart begins the call CallID of the tool Name, DeltaCallArguments
	// adds Text to its JSON. An empty CallID means the call that was begun last.
	DeltaCallStart     DeltaType = "call_start"
	DeltaCallArguments DeltaType = "call_arguments"
	// DeltaBlockStop ends the block or call that was begun last.
	DeltaBlockStop DeltaType = "block_stop"
	// DeltaUsage tells the bill so far; fields that are 0 change nothing.
	DeltaUsage DeltaType = "usage"
	// DeltaStop ends the answer, with the reason, and the provider's name of the
	// model in Name if it is known.
	DeltaStop DeltaType = "stop"
	// DeltaCallReady: the call is whole, with its Arguments.
	DeltaCallReady DeltaType = "call_ready"
	// DeltaCallCancel: a call that was begun will not come, for the reason in Text.
	DeltaCallCancel DeltaType = "call_cancel"
	// DeltaReset: all that was emitted is void, for the reason in Text.
	DeltaReset DeltaType = "reset"
)

// Delta is one part of an answer under way. Which fields are set follows from Type.
type Delta struct {
	Type   DeltaType
	Text   string
	CallID string
	Name   string
	// Arguments belong to call_ready.
	Arguments any
	Usage     *abi.Usage
	Stop      abi.StopReason
}
