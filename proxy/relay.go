package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"

	"github.com/mortise-dev/mortise/abi"
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
	held   holding
	tail   []wire.Event // from the stop reason on
	kept   int          // bytes of tail
	parts  []*part
	shown  int // blocks of earlier parts that the client has
	spent  wire.Usage
	paid   []wire.Usage
	ended  bool
	// decided is how many calls of an answer of Chat were decided about.
	decided int
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
	x.transformStream(ctx, w, resp, body)
}

// transformStream relays a stream that is decoded.
func (x *exchange) transformStream(ctx context.Context, w http.ResponseWriter, resp *http.Response, body io.Reader) {
	head(w, resp, true) // its length is not known, even where the upstream knew it
	l := &relay{x: x, out: newOutput(w, x.proto), write: wire.Rewriter{Protocol: x.proto}, body: x.current()}
	stop := l.out.keepAlive(ctx)
	defer stop()
	_ = l.out.flush()
	err := l.run(ctx, body)
	answer := l.merged()
	x.guarded(ctx, func() {
		x.finish(context.WithoutCancel(ctx), answer, err == nil && ctx.Err() == nil && !l.stream.Large)
	})
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
	if x.acted || x.req == nil {
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
			if bad, ok := errors.AsType[malformedError](err); ok {
				return l.broken(ctx, bad.Error())
			}
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
			return l.broken(ctx, "the provider did not continue the answer")
		}
		if open != nil {
			_ = open.Close()
		}
		open = resp.Body
		if body, err = wire.Decoder(resp.Header.Get("Content-Encoding"), resp.Body); err != nil {
			return l.broken(ctx, err.Error())
		}
	}
}

func (l *relay) begin() {
	l.stream = wire.NewStream(l.x.proto)
	l.split = wire.Splitter{}
	l.tail, l.kept, l.held, l.ended = nil, 0, holding{}, false
	l.decided = 0
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
	switch {
	case len(e.Raw) > maxHeld && (l.x.gates || len(l.x.hidden) > 0): // it may be a part of one, which is not read
		return malformedError("an event is too large to be held")
	case bytes.HasPrefix(e.Raw, []byte("\ufeff")): // some clients read what follows
		return malformedError("it begins with a byte order mark")
	case (l.ended || l.stream.Failed) && len(e.Data) > 0 && string(e.Data) != "[DONE]":
		return nil // nothing follows the end
	case l.vetted == nil:
		return l.event(ctx, e)
	}
	now, ended := l.vetted.add(e)
	if plugin := l.x.s.closedAt(abi.AfterInference); plugin != "" && l.vetted.size > maxHeld {
		return malformedError("it is too large for plugin " + plugin + ", which fails closed")
	}
	l.write.Dirty = l.write.Dirty || l.vetted.stream.Failed // nothing of what was held is sent
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
	switch {
	case l.vetted.open:
		return nil
	case l.vetted.stream.Unclear != "":
		return malformedError(l.vetted.stream.Unclear)
	}
	blocks, err := l.x.vet(ctx, l.parts[len(l.parts)-1], &l.vetted.stream.Answer)
	if err != nil {
		l.vetted.open = true
		return l.broken(ctx, "a plugin refuses the answer: "+err.Error())
	}
	l.write.Dirty = l.write.Dirty || blocks != nil
	return l.all(ctx, l.vetted.release(l.x.proto, blocks))
}

// event takes one event.
func (l *relay) event(ctx context.Context, e wire.Event) error {
	step := l.stream.Event(e)
	switch {
	case l.stream.Large && (l.x.gates || len(l.x.hidden) > 0):
		return malformedError("it is too large")
	case l.stream.Unclear != "":
		return malformedError(l.stream.Unclear)
	}
	l.write.ID = cmp.Or(l.write.ID, l.stream.ID)
	first := len(l.parts) == 1
	switch step.Kind {
	case wire.Start:
		switch {
		case l.early(e):
			return malformedError("it begins with a call")
		case !first:
			return nil
		}
	case wire.Other:
		switch {
		case l.early(e):
			return malformedError("a call came without its events")
		case !first && l.x.proto == wire.Responses && (e.Name == "response.in_progress" || e.Name == "response.queued"):
			return nil
		case l.x.proto == wire.Chat && len(l.held.events) > 0:
			return l.held.add(e, -1)
		case len(l.tail) > 0:
			return l.end(ctx, e)
		}
	case wire.Open, wire.Delta, wire.Close:
		return l.block(ctx, e, step)
	case wire.Stop, wire.End:
		l.ended = step.Kind == wire.End
		return l.end(ctx, e)
	case wire.Failure:
		if l.held = (holding{}); l.early(e) {
			return malformedError("a call came without its events")
		}
	}
	return l.out.events(l.write.Forward(e))
}

// end takes an event of the end of an answer, whose calls must have come by then.
func (l *relay) end(ctx context.Context, e wire.Event) error {
	l.tail = append(l.tail, e)
	if l.kept += len(e.Raw); l.kept > maxHeld {
		return malformedError("its end is too long")
	}
	switch {
	case l.x.proto == wire.Chat:
		return l.chatEnd(ctx, e)
	case !l.held.whole():
		return malformedError("a call has no end")
	case l.x.proto == wire.Responses && !l.write.Dirty && slices.ContainsFunc(wire.Output(e.Data), l.unseen): // else the list is written anew
		return malformedError("a call or a text came without its events")
	}
	return nil
}

// unseen reports whether a block at the end of an answer is none that came before: some servers may send no events of it.
func (l *relay) unseen(o wire.Out) bool {
	return (l.vetted != nil || o.Type == wire.TypeCall && l.holds(&o)) && !slices.ContainsFunc(l.stream.Blocks, func(b wire.Out) bool {
		return b.Type == o.Type && b.Text == o.Text && reflect.DeepEqual(b.Call(), o.Call())
	})
}

// malformedError is why an answer cannot be relayed while plugins decide about its calls.
type malformedError string

// Error implements error.
func (e malformedError) Error() string { return "the provider's answer cannot be read: " + string(e) }
