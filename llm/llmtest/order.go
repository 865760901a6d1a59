package llmtest

import (
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// order checks the order of deltas.
type order struct {
	t *testing.T
	// open is the type of the delta that began the block under way, or empty.
	open    llm.DeltaType
	call    string
	stopped bool
	text    string
	usage   abi.Usage
	all     []llm.Delta
}

func (o *order) emit(d llm.Delta) bool {
	o.all = append(o.all, d)
	breach := func(what string) { o.t.Errorf("delta %d, %+v: %s", len(o.all), d, what) }
	if o.stopped {
		breach("comes after the stop")
	}
	if o.open == llm.DeltaCallStart && d.Type != llm.DeltaCallArguments && d.Type != llm.DeltaBlockStop && d.Type != llm.DeltaUsage {
		breach("comes before the block_stop of the call " + o.call)
	}
	switch d.Type {
	case llm.DeltaText, llm.DeltaReasoning:
		if d.Text == "" {
			breach("has no text")
		}
		if o.open = d.Type; d.Type == llm.DeltaText {
			o.text += d.Text
		}
	case llm.DeltaSignature:
		if d.Text == "" {
			breach("has no signature")
		}
		o.open = ""
	case llm.DeltaCallStart:
		if d.CallID == "" || d.Name == "" {
			breach("has no call id or no name")
		}
		o.open, o.call = d.Type, d.CallID
	case llm.DeltaCallArguments:
		if o.open != llm.DeltaCallStart || d.CallID != "" && d.CallID != o.call {
			breach("is not of the call that is under way")
		}
	case llm.DeltaBlockStop:
		o.open = ""
	case llm.DeltaUsage:
		o.bill(d.Usage)
	case llm.DeltaStop:
		if o.stopped = true; d.Stop == "" {
			breach("has no reason")
		}
	default:
		breach("is a client's own")
	}
	return true
}

func (o *order) bill(u *abi.Usage) {
	if u == nil {
		o.t.Errorf("delta %d has no usage", len(o.all))
		return
	}
	for _, f := range []struct {
		to   *int64
		from int64
	}{
		{&o.usage.PromptTokens, u.PromptTokens},
		{&o.usage.CompletionTokens, u.CompletionTokens},
		{&o.usage.TotalTokens, u.TotalTokens},
		{&o.usage.CacheReadTokens, u.CacheReadTokens},
		{&o.usage.CacheCreationTokens, u.CacheCreationTokens},
		{&o.usage.ThinkingTokens, u.ThinkingTokens},
	} {
		if f.from != 0 {
			*f.to = f.from
		}
	}
}

// stream streams an answer, and checks the order until it ends.
func (w *world) stream(r llm.Request) (*order, error) {
	w.t.Helper()
	s, ok := w.m.(llm.Streamer)
	if !ok {
		w.t.Fatal("the model is no llm.Streamer")
	}
	o := &order{t: w.t}
	err := s.Stream(w.ctx(), r, o.emit)
	if err == nil && !o.stopped {
		w.t.Error("the stream ended without a stop")
	}
	if err != nil && o.stopped {
		w.t.Errorf("the stream failed after its stop: %v", err)
	}
	return o, err
}
