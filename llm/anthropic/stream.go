package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// errUnwanted is returned after emit returned false.
var errUnwanted = errors.New("the caller wants no more")

// Stream implements [llm.Streamer]. It emits an empty usage delta for each ping of the API.
func (m *Model) Stream(ctx context.Context, r llm.Request, emit func(llm.Delta) bool) error {
	var response *http.Response
	q, err := m.post(ctx, &r, messagesPath, &response, option.WithJSONSet("stream", true))
	if err != nil {
		return m.failure(ctx, r.Model, err)
	}
	events := ssestream.NewDecoder(response)
	defer func() { _ = events.Close() }() // the answer has been read
	s := &stream{request: q, emit: emit}
	for !s.over && events.Next() {
		err := s.event(events.Event().Data)
		if errors.Is(err, errUnwanted) {
			return ctx.Err()
		}
		if err != nil {
			return m.failure(ctx, r.Model, err)
		}
	}
	switch s.stop {
	case "":
		return m.failure(ctx, r.Model, cut(events.Err()))
	case sdk.StopReasonRefusal:
		return m.refusal(r.Model, &s.details)
	default:
		emit(llm.Delta{Type: llm.DeltaStop, Stop: stopReason(s.stop), Name: s.model})
		return nil
	}
}

// stream is an answer in progress.
type stream struct {
	*request
	emit    func(llm.Delta) bool
	model   string
	usage   sdk.Usage
	stop    sdk.StopReason
	details sdk.RefusalStopDetails
	over    bool
	// blocks are in the order of the answer; those before open are complete and emitted. The API may interleave events
	// of several blocks, deltas may not.
	blocks []block
	open   int
	calls  int
}

// block is a content block of the answer.
type block struct {
	kind, id  string
	signature string
	after     int // number of preceding calls
	written   bool
	over      bool
	waiting   []llm.Delta
}

func (s *stream) event(data []byte) error {
	var e sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: an event is not JSON", errCut)
	}
	switch e.Type {
	case "ping":
		return s.send(llm.Delta{Type: llm.DeltaUsage, Usage: &abi.Usage{}})
	case "error":
		return eventError(data)
	case "message_start":
		s.model, s.usage = e.Message.Model, e.Message.Usage
		return s.bill()
	case "message_delta":
		s.stop, s.details = e.Delta.StopReason, e.Delta.StopDetails
		s.count(&e.Usage)
		return s.bill()
	case "message_stop":
		s.over = true
		return s.flush()
	case "content_block_start":
		return s.begin(&e)
	case "content_block_delta", "content_block_stop":
		if e.Index < 0 || e.Index >= int64(len(s.blocks)) {
			return fmt.Errorf("%w: an event is of block %d, which was not begun", errCut, e.Index)
		}
		if e.Type == "content_block_stop" {
			return s.end(int(e.Index))
		}
		return s.add(int(e.Index), &e)
	}
	return nil
}

func (s *stream) send(d llm.Delta) error {
	if !s.emit(d) {
		return errUnwanted
	}
	return nil
}

func (s *stream) bill() error { return s.send(llm.Delta{Type: llm.DeltaUsage, Usage: usage(&s.usage)}) }

// count merges the totals of a message_delta.
func (s *stream) count(u *sdk.MessageDeltaUsage) {
	s.usage.OutputTokens = max(s.usage.OutputTokens, u.OutputTokens)
	if u.JSON.InputTokens.Valid() {
		s.usage.InputTokens = u.InputTokens
	}
	if u.JSON.CacheReadInputTokens.Valid() {
		s.usage.CacheReadInputTokens = u.CacheReadInputTokens
	}
	if u.JSON.CacheCreationInputTokens.Valid() {
		s.usage.CacheCreationInputTokens = u.CacheCreationInputTokens
	}
	if u.JSON.OutputTokensDetails.Valid() {
		s.usage.OutputTokensDetails = u.OutputTokensDetails
	}
}

// begin starts a block. Blocks start in order, without gaps.
func (s *stream) begin(e *sdk.MessageStreamEventUnion) error {
	if e.Index != int64(len(s.blocks)) {
		return fmt.Errorf("%w: block %d begins where block %d was due", errCut, e.Index, len(s.blocks))
	}
	b := &e.ContentBlock
	s.blocks = append(s.blocks, block{kind: b.Type, id: b.ID, after: s.calls})
	i := len(s.blocks) - 1
	switch b.Type {
	case "text":
		return s.write(i, llm.DeltaText, b.Text)
	case "thinking":
		s.blocks[i].signature = b.Signature
		return s.write(i, llm.DeltaReasoning, b.Thinking)
	case "redacted_thinking":
		s.blocks[i].signature = redactedPrefix + b.Data
	case "tool_use":
		s.calls++
		if err := s.delta(i, llm.Delta{Type: llm.DeltaCallStart, CallID: b.ID, Name: s.name(b.Name)}); err != nil {
			return err
		}
		if input, err := json.Marshal(b.Input); err == nil && string(input) != "{}" && string(input) != "null" {
			return s.write(i, llm.DeltaCallArguments, string(input))
		}
	}
	return nil
}

func (s *stream) add(i int, e *sdk.MessageStreamEventUnion) error {
	switch e.Delta.Type {
	case "text_delta":
		return s.write(i, llm.DeltaText, e.Delta.Text)
	case "thinking_delta":
		return s.write(i, llm.DeltaReasoning, e.Delta.Thinking)
	case "signature_delta":
		s.blocks[i].signature += e.Delta.Signature
	case "input_json_delta":
		if s.blocks[i].kind == "tool_use" { // not a server-side tool
			return s.write(i, llm.DeltaCallArguments, e.Delta.PartialJSON)
		}
	}
	return nil
}

func (s *stream) write(i int, kind llm.DeltaType, text string) error {
	if text == "" {
		return nil
	}
	s.blocks[i].written = true
	d := llm.Delta{Type: kind, Text: text}
	if kind == llm.DeltaCallArguments {
		d.CallID = s.blocks[i].id
	}
	return s.delta(i, d)
}

// delta emits a delta, or queues it until the preceding blocks are complete.
func (s *stream) delta(i int, d llm.Delta) error {
	if i != s.open {
		s.blocks[i].waiting = append(s.blocks[i].waiting, d)
		return nil
	}
	return s.send(d)
}

// flush ends all open blocks.
func (s *stream) flush() error {
	for i := range s.blocks {
		if err := s.end(i); err != nil {
			return err
		}
	}
	return nil
}

// end ends a block, and emits what is queued for the following ones.
func (s *stream) end(i int) error {
	b := &s.blocks[i]
	if b.over {
		return nil
	}
	switch {
	case b.kind == "tool_use" && !b.written:
		b.waiting = append(b.waiting, llm.Delta{Type: llm.DeltaCallArguments, CallID: b.id, Text: "{}"})
	case b.signature != "":
		b.waiting = append(b.waiting, llm.Delta{Type: llm.DeltaSignature, Text: signed(b.signature, b.after)})
	}
	b.over, b.waiting = true, append(b.waiting, llm.Delta{Type: llm.DeltaBlockStop})
	for ; s.open < len(s.blocks); s.open++ {
		next := &s.blocks[s.open]
		for _, d := range next.waiting {
			if err := s.send(d); err != nil {
				return err
			}
		}
		next.waiting = nil
		if !next.over {
			return nil
		}
	}
	return nil
}
