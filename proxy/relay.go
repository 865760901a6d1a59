package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// maxContinued is how often one answer is continued behind hidden calls.
const maxContinued = 8

// relay relays a stream in which calls may be held, changed and removed.
type relay struct {
	x     *exchange
	out   *output
	body  []byte // the request that is continued
	write wire.Rewriter

	split  wire.Splitter
	stream *wire.Stream
	vetted *vetted // nil where no plugin replaces answers
	held   []wire.Event
	open   int // index of the block that is held, -1 for none
	tail   []wire.Event
	parts  []*part
	shown  int // blocks of earlier parts that the client has
	spent  wire.Usage
	paid   []wire.Usage
	ended  bool
}

// errCut is an upstream that broke off.
var errCut = errors.New("the upstream broke off")

// transform relays an answer whose calls plugins decide about.
func (x *exchange) transform(ctx context.Context, w http.ResponseWriter, resp *http.Response) {
	if !eventStream(resp.Header.Get("Content-Type")) {
		x.transformWhole(ctx, w, resp)
		return
	}
	body, err := wire.Decoder(resp.Header.Get("Content-Encoding"), resp.Body)
	if err != nil {
		x.s.stats.unread.Add(1)
		if plugin := x.s.failsClosed(); plugin != "" {
			x.s.refuse(ctx, w, x.proto, plugin)
			return
		}
		x.s.relayRaw(w, resp, nil)
		return
	}
	head(w, resp, true) // its length is not known, even where the upstream knew it
	l := &relay{x: x, out: newOutput(w, x.proto), write: wire.Rewriter{Protocol: x.proto}, body: x.current()}
	stop := l.out.keepAlive(ctx)
	defer stop()
	_ = l.out.flush()
	err = l.run(ctx, body)
	answer := l.merged()
	x.guarded(ctx, func() { x.finish(context.WithoutCancel(ctx), answer, err == nil && ctx.Err() == nil) })
	if err != nil {
		stop()
		if errors.Is(err, errCut) {
			x.s.stats.cuts.Add(1)
		}
		panic(http.ErrAbortHandler)
	}
}

// current is the body that was sent.
func (x *exchange) current() []byte {
	if x.acted {
		return x.body
	}
	return x.req.Body
}

// run relays one part after another until the answer ends.
func (l *relay) run(ctx context.Context, body io.Reader) error {
	var open io.Closer
	defer func() {
		if open != nil {
			_ = open.Close()
		}
	}()
	for {
		l.begin()
		if err := l.read(ctx, body); err != nil {
			return err
		}
		p := l.parts[len(l.parts)-1]
		if l.stream.Failed {
			return nil
		}
		if !l.continues(p) {
			return l.finish(ctx, p)
		}
		resp, err := l.next(ctx, p) //nolint:bodyclose // closed by the next part, or by the defer above
		if err != nil {
			return err
		}
		if resp == nil {
			return l.broken("the provider did not continue the answer")
		}
		if open != nil {
			_ = open.Close()
		}
		open = resp.Body
		if body, err = wire.Decoder(resp.Header.Get("Content-Encoding"), resp.Body); err != nil {
			return err
		}
	}
}

func (l *relay) begin() {
	l.stream = wire.NewStream(l.x.proto)
	l.split = wire.Splitter{}
	l.tail, l.held, l.open, l.ended = nil, nil, -1, false
	if l.x.replaces {
		l.vetted = &vetted{stream: wire.NewStream(l.x.proto)}
	}
	l.parts = append(l.parts, &part{answer: &l.stream.Answer, removed: map[string]verdict{}})
	l.write.Base, l.write.Removed = l.shown, 0
}

// read takes the events of one part.
func (l *relay) read(ctx context.Context, body io.Reader) error {
	buf, _ := buffers.Get().(*[copySize]byte)
	defer buffers.Put(buf)
	for {
		n, err := body.Read(buf[:])
		_, _ = l.split.Write(buf[:n])
		if terr := l.taken(ctx, errors.Is(err, io.EOF)); terr != nil {
			return terr
		}
		if werr := l.out.flush(); werr != nil {
			return werr
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && (l.ended || l.stream.Failed):
			return nil
		case errors.Is(err, io.EOF) && len(l.tail) > 0 && l.x.proto == wire.Chat:
			return nil // a server without [DONE]
		default:
			return errCut
		}
	}
}

// taken takes the events that came.
func (l *relay) taken(ctx context.Context, last bool) error {
	for {
		e, ok := l.split.Next()
		switch {
		case ok:
		case last && l.vetted != nil && l.vetted.stream.Stop != "":
			return l.vet(ctx) // a server without [DONE]
		default:
			return nil
		}
		if err := l.take(ctx, e); err != nil {
			return err
		}
	}
}

// take takes one event, and holds it if plugins have to see the whole answer first.
func (l *relay) take(ctx context.Context, e wire.Event) error {
	if l.vetted == nil {
		return l.event(ctx, e)
	}
	now, ended := l.vetted.add(e)
	if err := l.all(ctx, now); err != nil || !ended {
		return err
	}
	return l.vet(ctx)
}

func (l *relay) all(ctx context.Context, events []wire.Event) error {
	for _, e := range events {
		if err := l.event(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// vet has plugins see a part of the answer that is complete, and lets go of it, or of what they put in its place.
func (l *relay) vet(ctx context.Context) error {
	if l.vetted.open {
		return nil
	}
	blocks, err := l.x.vet(ctx, &l.vetted.stream.Answer)
	if err != nil {
		l.vetted.open = true
		return l.broken("a plugin refuses the answer: " + err.Error())
	}
	l.write.Dirty = l.write.Dirty || blocks != nil
	return l.all(ctx, l.vetted.release(l.x.proto, blocks))
}

// event takes one event.
func (l *relay) event(ctx context.Context, e wire.Event) error {
	step := l.stream.Event(e)
	first := len(l.parts) == 1
	switch step.Kind {
	case wire.Start:
		if l.write.ID == "" {
			l.write.ID = l.stream.ID
		}
		if !first {
			return nil
		}
	case wire.Other:
		if !first && l.x.proto == wire.Responses && e.Name != "" {
			return nil // response.in_progress
		}
		if l.open >= 0 && l.x.proto == wire.Chat {
			return l.hold(e)
		}
	case wire.Open, wire.Delta, wire.Close:
		return l.block(ctx, e, step)
	case wire.Stop:
		return l.stop(ctx, e)
	case wire.End:
		l.ended = true
		l.tail = append(l.tail, e)
		return nil
	case wire.Failure:
		l.held = nil
	}
	if len(l.tail) > 0 && step.Kind == wire.Other {
		l.tail = append(l.tail, e)
		return nil
	}
	return l.out.events(l.write.Forward(e))
}

// block takes an event of a block, and decides about a call at its end.
func (l *relay) block(ctx context.Context, e wire.Event, step wire.Step) error {
	o := step.Block
	if step.Kind == wire.Open && o != nil && o.Type == wire.TypeCall && !o.Server && l.open < 0 && l.holds(o) {
		l.open = o.Index
	}
	if l.open < 0 {
		return l.out.events(l.write.Forward(e))
	}
	if err := l.hold(e); err != nil {
		return err
	}
	if step.Kind != wire.Close || o == nil || o.Index != l.open {
		return nil
	}
	held := l.held
	l.held, l.open = nil, -1
	return l.decide(ctx, o, held)
}

// holds reports whether a call is held: plugins decide about it, or it is a hidden one. A name that is not known yet is
// taken for either.
func (l *relay) holds(o *wire.Out) bool { return l.x.gates || o.Name == "" || l.x.hidden[o.Name] }

func (l *relay) hold(e wire.Event) error {
	l.held = append(l.held, e)
	n := 0
	for i := range l.held {
		n += len(l.held[i].Raw)
	}
	if n > maxHeld {
		return errors.New("a call is too large to be held")
	}
	return nil
}

// decide decides about one call, of Anthropic or Responses.
func (l *relay) decide(ctx context.Context, o *wire.Out, held []wire.Event) error {
	v := l.x.judge(ctx, o)
	p := l.parts[len(l.parts)-1]
	switch {
	case v.removed:
		l.x.s.stats.removed.Add(1)
		p.removed[o.ID] = v
		l.write.Removed++
		l.write.Dirty = true
		return nil
	case v.args != nil:
		err := l.out.events(l.write.Call(o, v.args, held)...)
		l.rewritten(o)
		return err
	}
	for i := range held {
		held[i] = l.write.Forward(held[i])
	}
	return l.out.events(held...)
}

// rewritten notes the new arguments in the answer.
func (l *relay) rewritten(o *wire.Out) {
	for i := range l.stream.Blocks {
		if l.stream.Blocks[i].ID == o.ID {
			l.stream.Blocks[i].Raw = o.Raw
		}
	}
}

// stop takes the event with the stop reason. Chat's calls end with it.
func (l *relay) stop(ctx context.Context, e wire.Event) error {
	l.tail = append(l.tail, e)
	if l.x.proto != wire.Chat || len(l.held) == 0 {
		return nil
	}
	p := l.parts[len(l.parts)-1]
	changed := false
	for i := range l.stream.Blocks {
		o := &l.stream.Blocks[i]
		if o.Type != wire.TypeCall {
			continue
		}
		switch v := l.x.judge(ctx, o); {
		case v.removed:
			l.x.s.stats.removed.Add(1)
			p.removed[o.ID], changed = v, true
		case v.args != nil:
			l.write.Call(o, v.args, nil)
			changed = true
		}
	}
	held := l.held
	l.held, l.open = nil, -1
	if !changed {
		for i := range held {
			held[i] = l.write.Forward(held[i])
		}
		return l.out.events(held...)
	}
	l.write.Dirty = true
	return l.chatCalls(p, held[0])
}

// chatCalls writes the calls that stay, in a chunk like one that came.
func (l *relay) chatCalls(p *part, like wire.Event) error {
	n := 0
	for _, o := range p.visible() {
		if o.Type != wire.TypeCall {
			continue
		}
		b := like.Data
		call := wire.Apply(o.Raw, []wire.Splice{wire.AddField(o.Raw, wire.Whole(o.Raw), "index", wire.Marshal(n))})
		n++
		var s []wire.Splice
		_ = wire.Array(b, wire.Field(b, wire.Whole(b), "choices"), func(_ int, at wire.Span) error {
			s = append(s, wire.Splice{At: wire.Field(b, at, "delta", "tool_calls"), New: append(append([]byte{'['}, call...), ']')})
			return nil
		})
		if err := l.out.events(l.write.Forward(like.WithData(wire.Apply(b, s)))); err != nil {
			return err
		}
	}
	return nil
}

// continues reports whether the provider is asked again: it called hidden tools alone, or its calls were all removed.
func (l *relay) continues(p *part) bool {
	if len(p.removed) == 0 || p.answer.Lost || p.answer.StopReason() == "max_tokens" {
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
		return nil, err
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

// finish writes the end of the answer.
func (l *relay) finish(ctx context.Context, p *part) error {
	stuck := len(p.removed) > 0 && len(l.parts) > maxContinued
	if stuck {
		text := "[mortise: the model called hidden or blocked tools too often in one answer]"
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
func (l *relay) broken(message string) error {
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
	l.stream.Failed = true
	if err := l.out.events(e); err != nil {
		return err
	}
	return l.out.flush()
}
