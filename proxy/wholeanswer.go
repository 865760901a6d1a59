package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// transformWhole relays an answer that is not streamed, whose calls plugins decide about.
func (x *exchange) transformWhole(ctx context.Context, w http.ResponseWriter, resp *http.Response) {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxBody+1))
	if err != nil {
		x.s.stats.cuts.Add(1)
		panic(http.ErrAbortHandler)
	}
	plain, err := wire.Decode(resp.Header.Get("Content-Encoding"), raw)
	var a *wire.Answer
	if err == nil {
		a, err = wire.ParseAnswer(x.proto, plain)
	}
	if err != nil || len(raw) > wire.MaxBody {
		x.unread(ctx, w, resp, raw, plain)
		return
	}
	parts, last, changed := x.wholeParts(ctx, a, plain)
	if last == nil {
		x.owe(ctx, parts)
		if x.refusal != "" {
			fail(w, x.proto, http.StatusForbidden, x.refusal)
		} else {
			fail(w, x.proto, http.StatusBadGateway, "mortise: the provider did not continue the answer")
		}
		return
	}
	x.graft(ctx, parts)
	var spent wire.Usage
	for _, p := range parts[:len(parts)-1] {
		spent.Output += p.answer.Usage.Output
		x.billPart(p.answer.Usage)
	}
	m := x.end(parts, spent)
	if changed {
		raw = m.Whole(x.proto, last)
		head2(w, resp, len(raw))
	} else {
		head(w, resp, false)
	}
	_, werr := w.Write(raw)
	merged := *parts[len(parts)-1].answer
	merged.Blocks = nil
	for _, p := range parts {
		merged.Blocks = append(merged.Blocks, p.visible()...)
	}
	x.guarded(ctx, func() { x.finish(context.WithoutCancel(ctx), &merged, werr == nil && ctx.Err() == nil) })
}

// unread relays an answer that is no JSON: clients that asked for a stream read it as one.
func (x *exchange) unread(ctx context.Context, w http.ResponseWriter, resp *http.Response, raw, plain []byte) {
	if x.stream && len(plain) > 0 && len(raw) <= wire.MaxBody {
		x.transformStream(ctx, w, resp, bytes.NewReader(plain))
		return
	}
	x.s.stats.unread.Add(1)
	if plugin := x.s.failsClosed(); plugin != "" {
		x.s.refuse(ctx, w, x.proto, plugin)
		return
	}
	head(w, resp, false)
	_, _ = w.Write(raw)
	_, _ = io.Copy(w, resp.Body) // what is beyond the limit
}

// head2 copies a head for a body of another length.
func head2(w http.ResponseWriter, resp *http.Response, n int) {
	resp.Header.Set("Content-Length", strconv.Itoa(n))
	resp.Header.Del("Content-Encoding")
	head(w, resp, false)
}

// wholeParts decides about the calls of an answer, and continues it as often as that takes. Last is the body of the
// last part, nil when the provider refused to continue.
func (x *exchange) wholeParts(ctx context.Context, a *wire.Answer, body []byte) (parts []*part, last []byte, changed bool) {
	l := &relay{x: x, body: x.current(), write: wire.Rewriter{Protocol: x.proto}}
	for {
		p := &part{answer: a, removed: map[string]verdict{}}
		l.parts = append(l.parts, p)
		x.vetWhole(ctx, p, &changed)
		if a.Unclear == "" && x.refusal == "" && l.judgeWhole(ctx, p) {
			if changed = true; a.Fixed() {
				a.Unclear = fixedCall
			}
		}
		if a.Unclear != "" {
			x.refusal = "mortise: " + malformedError(a.Unclear).Error()
		}
		if x.refusal != "" {
			return l.parts, nil, true
		}
		if !l.continues(p) {
			if text := l.notice(p); text != "" {
				o := wire.NewText(text)
				o.Index = len(a.Blocks)
				o.SetRaw(x.proto)
				a.Blocks = append(a.Blocks, o)
			}
			return l.parts, body, changed
		}
		x.s.stats.continued.Add(1)
		next, err := x.continued(l.body, p)
		if err != nil {
			return l.parts, nil, true
		}
		l.body = next
		if a, body = x.again(ctx, next); a == nil {
			return l.parts, nil, true
		}
	}
}

// vetWhole has plugins see a part of an answer before its calls are judged.
func (x *exchange) vetWhole(ctx context.Context, p *part, changed *bool) {
	a := p.answer
	if !x.replaces || a.Unclear != "" || len(a.Blocks) == 0 && !a.Done { // an error, or an answer to fetch later
		return
	}
	blocks, err := x.vet(ctx, p, a)
	switch {
	case err != nil:
		x.refusal = "mortise: a plugin refuses the answer: " + err.Error()
		a.Blocks = nil
	case blocks != nil:
		a.Blocks, *changed = blocks, true
	}
}

// judgeWhole decides about the calls of a part, and reports whether it changed one.
func (l *relay) judgeWhole(ctx context.Context, p *part) (changed bool) {
	for i := range p.answer.Blocks {
		o := &p.answer.Blocks[i]
		if o.Type != wire.TypeCall || o.Server || !l.holds(o) {
			continue
		}
		switch v := l.x.judge(ctx, o); {
		case v.removed:
			l.x.s.stats.removed.Add(1)
			p.removed[o.ID], changed = v, true
		case v.args != nil:
			setArguments(l.x.proto, o, v.args)
			changed = true
		}
	}
	return changed
}

// again sends a continued request.
func (x *exchange) again(ctx context.Context, body []byte) (*wire.Answer, []byte) {
	resp, err := x.post(ctx, body)
	if err != nil {
		return nil, nil
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxBody))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, nil
	}
	if raw, err = wire.Decode(resp.Header.Get("Content-Encoding"), raw); err != nil {
		return nil, nil
	}
	a, err := wire.ParseAnswer(x.proto, raw)
	if err != nil {
		return nil, nil
	}
	return a, bytes.Clone(raw)
}

// setArguments gives a call other arguments.
func setArguments(p wire.Protocol, o *wire.Out, args []byte) {
	switch {
	case p == wire.Chat:
		o.Raw = wire.ChatCall(o, args)
	case p == wire.Messages:
		o.Raw = wire.Apply(o.Raw, []wire.Splice{wire.Set(o.Raw, "input", args)})
	case o.Custom:
		o.Raw = wire.Apply(o.Raw, []wire.Splice{wire.Set(o.Raw, "input", wire.Quote(string(args)))})
	default:
		o.Raw = wire.Apply(o.Raw, []wire.Splice{wire.Set(o.Raw, "arguments", wire.Quote(string(args)))})
	}
}
