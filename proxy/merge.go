package proxy

import (
	"context"
	"net/http"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// continues reports whether the provider is asked again: it called hidden tools alone, or its calls were all removed.
func (l *relay) continues(p *part) bool {
	if l.x.fetched || len(p.removed) == 0 || p.answer.Lost || p.answer.StopReason() == "max_tokens" {
		return false
	}
	for _, c := range p.answer.Calls() {
		if _, gone := p.removed[c.ID]; !gone {
			return false
		}
	}
	return len(l.parts) <= maxContinued
}

// next asks the provider to continue after the results of the calls that were removed. It returns nothing when the
// provider refuses.
func (l *relay) next(ctx context.Context, p *part) (*http.Response, error) {
	l.x.s.stats.continued.Add(1)
	l.shown += len(p.visible())
	l.write.Dirty = true
	l.spent.Output += p.answer.Usage.Output
	l.paid = append(l.paid, p.answer.Usage)
	body, err := l.x.continued(l.body, p)
	if err != nil {
		return nil, nil //nolint:nilerr // it cannot be continued
	}
	l.body = body
	resp, err := l.x.post(ctx, body)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, nil
	}
	if resp.StatusCode != http.StatusOK || !eventStream(resp.Header.Get("Content-Type")) {
		_ = resp.Body.Close()
		return nil, nil
	}
	return resp, nil
}

// merged is the answer of all parts.
func (l *relay) merged() *wire.Answer {
	last := *l.parts[len(l.parts)-1].answer
	last.Blocks = nil
	for _, p := range l.parts {
		last.Blocks = append(last.Blocks, p.visible()...)
	}
	for _, u := range l.paid { // each was paid for by itself
		l.x.billPart(u)
	}
	return &last
}

// notice is what the client reads at the end of an answer whose calls were removed and that cannot be continued.
func (l *relay) notice(p *part) (text string) {
	switch {
	case l.x.fetched:
		for _, o := range p.answer.Calls() {
			if v, gone := p.removed[o.ID]; gone {
				text += "[mortise: " + o.Name + ": " + v.result + "]"
			}
		}
	case len(p.removed) > 0 && len(l.parts) > maxContinued:
		text = "[mortise: the model called hidden or blocked tools too often in one answer]"
	}
	return text
}

// finish writes the end of the answer.
func (l *relay) finish(ctx context.Context, p *part) error {
	if text := l.notice(p); text != "" {
		if err := l.out.events(l.write.Notice(l.shown+len(p.visible()), text)...); err != nil {
			return err
		}
	}
	l.x.graft(ctx, l.parts)
	if !l.write.Dirty {
		return l.out.events(l.tail...)
	}
	m := l.x.end(l.parts, l.spent)
	for _, e := range l.tail {
		if err := l.out.events(l.write.End(e, m)); err != nil {
			return err
		}
	}
	return l.out.flush()
}

// broken ends an answer that cannot be continued with an error of the protocol.
func (l *relay) broken(ctx context.Context, message string) error {
	l.x.s.stats.late.Add(1)
	body := errorBody(l.x.proto, http.StatusBadGateway, "mortise: "+message)
	e := wire.NewEvent("error", body)
	switch l.x.proto {
	case wire.Responses:
		e = l.write.Forward(wire.NewEvent("response.failed", wire.Marshal(map[string]any{
			"type": "response.failed", "sequence_number": 0, "response": map[string]any{
				"id": l.write.ID, "object": "response", "status": "failed", "output": []any{},
				"error": map[string]any{"code": "server_error", "message": "mortise: " + message},
			},
		})))
	case wire.Chat:
		e = wire.NewEvent("", body)
	case wire.Messages:
	}
	l.stream.Failed, l.stream.Done = true, false
	l.x.owe(ctx, l.parts)
	if err := l.out.events(e); err != nil {
		return err
	}
	return l.out.flush()
}
