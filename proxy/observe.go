package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// observer follows an answer that is relayed as it comes.
type observer struct {
	split  wire.Splitter
	stream *wire.Stream
	whole  []byte
	sse    bool
	lost   bool
}

func newObserver(p wire.Protocol, contentType string) *observer {
	return &observer{stream: wire.NewStream(p), sse: eventStream(contentType)}
}

func eventStream(contentType string) bool {
	return strings.HasPrefix(strings.ToLower(contentType), "text/event-stream")
}

// Write takes a piece of the decoded answer.
func (o *observer) Write(p []byte) (int, error) {
	if !o.sse {
		if len(o.whole)+len(p) > wire.MaxBody {
			o.lost, o.whole = true, nil
		}
		if !o.lost {
			o.whole = append(o.whole, p...)
		}
		return len(p), nil
	}
	_, _ = o.split.Write(p)
	for {
		e, ok := o.split.Next()
		if !ok {
			return len(p), nil
		}
		o.stream.Event(e)
	}
}

// answer is what came.
func (o *observer) answer() *wire.Answer {
	if o.sse {
		return &o.stream.Answer
	}
	if a, err := wire.ParseAnswer(o.stream.Protocol, o.whole); err == nil && !o.lost {
		return a
	}
	return &o.stream.Answer
}

// observe relays an answer as it is, and accounts for it.
func (x *exchange) observe(ctx context.Context, w http.ResponseWriter, resp *http.Response) {
	o := newObserver(x.proto, resp.Header.Get("Content-Type"))
	see, done := decoding(resp.Header.Get("Content-Encoding"), o)
	defer func() { // also when the client is gone
		done()
		x.guarded(ctx, func() { x.finish(context.WithoutCancel(ctx), o.answer(), ctx.Err() == nil && !o.stream.Large) })
	}()
	x.s.relayRaw(w, resp, see)
}

// decoding returns a function that takes pieces of an encoded body, and one that ends it.
func decoding(coding string, to io.Writer) (see func([]byte), done func()) {
	if coding == "" || strings.EqualFold(coding, "identity") {
		return func(p []byte) { _, _ = to.Write(p) }, func() {}
	}
	pr, pw := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d, err := wire.Decoder(coding, pr)
		if err == nil {
			_, _ = io.Copy(to, io.LimitReader(d, wire.MaxBody))
			if c, ok := d.(io.Closer); ok {
				_ = c.Close()
			}
		}
		_ = pr.Close() // later pieces are dropped
	}()
	return func(p []byte) { _, _ = pw.Write(p) }, func() {
		_ = pw.Close()
		<-ended
	}
}
