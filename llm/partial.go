package llm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
)

// Bounds on what a provider may stream as one answer.
const (
	maxAnswerBytes = 32 << 20
	maxBlocks      = 4096
	maxCalls       = 256
)

// Partial is an answer as far as it has come. It is plain data, so that a process
// can leave it to the next one.
type Partial struct {
	Content []abi.ContentBlock `json:"content,omitempty"`
	Calls   []PartialCall      `json:"calls,omitempty"`
}

// PartialCall is a call under way: its arguments are the start of a JSON text
// until it is Done.
type PartialCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"`
	Done      bool   `json:"done,omitempty"`
}

// Partials keeps answers under way, so that another process continues from them.
// It is safe for concurrent use.
type Partials interface {
	SavePartial(ctx context.Context, key string, p Partial) error
	// LoadPartial returns false when there is none.
	LoadPartial(ctx context.Context, key string) (Partial, bool, error)
	DeletePartial(ctx context.Context, key string) error
}

// assembly puts an answer together.
type assembly struct {
	Partial
	// open is set while the last block of Content is incomplete.
	open  bool
	bytes int
	usage abi.Usage
	stop  abi.StopReason
	model string
}

// add takes a delta, and reports an answer that is beyond all bounds.
func (a *assembly) add(d *Delta) error {
	a.bytes += len(d.Text) + len(d.CallID) + len(d.Name)
	if a.bytes > maxAnswerBytes || len(a.Content) > maxBlocks || len(a.Calls) > maxCalls {
		return &Error{Kind: KindInvalidRequest, Message: fmt.Sprintf(
			"the answer is larger than what is taken: %d bytes, %d blocks, %d calls at most", maxAnswerBytes, maxBlocks, maxCalls)}
	}
	switch d.Type {
	case DeltaText:
		a.text(abi.BlockText, d.Text)
	case DeltaReasoning:
		a.text(abi.BlockThinking, d.Text)
	case DeltaSignature:
		a.sign(d.Text)
	case DeltaCallStart:
		a.end()
		a.Calls = append(a.Calls, PartialCall{ID: d.CallID, Name: d.Name})
	case DeltaCallArguments:
		if c := a.call(d.CallID); c != nil && !c.Done {
			c.Arguments += d.Text
		}
	case DeltaBlockStop:
		a.end()
	case DeltaUsage:
		latest(&a.usage, d.Usage)
	case DeltaStop:
		a.end()
		a.stop = d.Stop
		if d.Name != "" {
			a.model = d.Name
		}
	case DeltaCallReady, DeltaCallCancel, DeltaReset: // a client's own
	}
	return nil
}

func (a *assembly) text(kind abi.BlockType, text string) {
	if text == "" {
		return
	}
	n := len(a.Content)
	if n > 0 && a.Content[n-1].Type == kind && (a.open || kind == abi.BlockText) {
		a.Content[n-1].Text += text
		a.open = true
		return
	}
	a.Content, a.open = append(a.Content, abi.ContentBlock{Type: kind, Text: text}), true
}

// sign ends a thinking block. Providers also sign thinking of which they show no text: it
// is a block of its own, without which they refuse the conversation or think again.
func (a *assembly) sign(signature string) {
	n := len(a.Content)
	if n == 0 || a.Content[n-1].Type != abi.BlockThinking || a.Content[n-1].Signature != "" {
		a.Content = append(a.Content, abi.ContentBlock{Type: abi.BlockThinking})
		n++
	}
	a.Content[n-1].Signature, a.open = signature, false
}

// end ends what was begun last.
func (a *assembly) end() {
	a.open = false
	if n := len(a.Calls); n > 0 {
		a.Calls[n-1].Done = true
	}
}

func (a *assembly) call(id string) *PartialCall {
	for i := range slices.Backward(a.Calls) {
		if id == "" || a.Calls[i].ID == id {
			return &a.Calls[i]
		}
	}
	return nil
}

// prose is the text so far.
func (a *assembly) prose() string {
	m := abi.Message{Content: a.Content}
	return m.Text()
}

// snapshot is a copy that what comes next does not change.
func (a *assembly) snapshot() Partial {
	return Partial{Content: slices.Clone(a.Content), Calls: slices.Clone(a.Calls)}
}

// keepText forgets calls, and thinking that has no signature: a provider would refuse it.
func (a *assembly) keepText() {
	a.Calls, a.open = nil, false
	a.Content = slices.DeleteFunc(a.Content, func(b abi.ContentBlock) bool {
		return b.Type == abi.BlockThinking && b.Signature == ""
	})
}

// latest takes over the fields that are set.
func latest(u, next *abi.Usage) {
	if next == nil {
		return
	}
	for _, f := range []struct{ to, from *int64 }{
		{&u.PromptTokens, &next.PromptTokens},
		{&u.CompletionTokens, &next.CompletionTokens},
		{&u.TotalTokens, &next.TotalTokens},
		{&u.CacheReadTokens, &next.CacheReadTokens},
		{&u.CacheCreationTokens, &next.CacheCreationTokens},
		{&u.ThinkingTokens, &next.ThinkingTokens},
	} {
		if *f.from > 0 {
			*f.to = *f.from
		}
	}
}

// AddUsage adds what one request cost to a total. Negative counts, which only a
// provider that is wrong gives, count as 0.
func AddUsage(total, u *abi.Usage) {
	if u == nil {
		return
	}
	total.PromptTokens += max(0, u.PromptTokens)
	total.CompletionTokens += max(0, u.CompletionTokens)
	total.TotalTokens += max(0, u.TotalTokens)
	total.CacheReadTokens += max(0, u.CacheReadTokens)
	total.CacheCreationTokens += max(0, u.CacheCreationTokens)
	total.ThinkingTokens += max(0, u.ThinkingTokens)
}

// decodeArguments reads the arguments of a call as a dynamic value. Nothing at all
// is nil.
func decodeArguments(text string) (any, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	return dynamic.Value([]byte(text))
}
