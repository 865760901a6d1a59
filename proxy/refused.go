package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// overflow puts a compaction in that is ready when the provider refuses a prompt as too long, and asks once more.
func (x *exchange) overflow(ctx context.Context, resp *http.Response) *http.Response {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body = &rest{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	plain, err := wire.Decode(resp.Header.Get("Content-Encoding"), body)
	text := string(plain)
	if err != nil || !strings.Contains(text, "prompt is too long") && !strings.Contains(text, "context_length_exceeded") &&
		!strings.Contains(text, "maximum context length") {
		return resp
	}
	x.s.stats.overflows.Add(1)
	x.ln.Lock()
	a := x.attach()
	s := a.ready
	ok := s != nil && x.req != nil && x.fits(s)
	if ok {
		x.put(ctx, a, s)
		x.offer()
		x.body, x.acted = wire.Apply(x.req.Body, x.splices(x.req, x.ln.State)), true
		x.save(ctx)
	}
	x.ln.Unlock()
	if !ok {
		return resp
	}
	again, err := x.post(ctx, nil)
	if err != nil {
		return resp
	}
	_ = resp.Body.Close()
	return again
}

// rest is a body of which a part was read.
type rest struct {
	io.Reader
	io.Closer
}

// fallBack sends the original when the provider refuses what the proxy made of it, and takes back what it had made. A
// request that plugins edited stays refused: the original may hold what they took out.
func (x *exchange) fallBack(ctx context.Context, resp *http.Response) *http.Response {
	x.ln.Lock()
	edited := len(x.ln.Edits) > 0 || len(x.ln.Left) > 0 || x.attach().override != nil
	x.ln.Unlock()
	if !x.acted || resp.StatusCode != http.StatusBadRequest || edited {
		return resp
	}
	x.acted = false
	again, err := x.post(ctx, nil)
	if err != nil || again.StatusCode == http.StatusBadRequest {
		if err == nil {
			_ = again.Body.Close()
		}
		x.acted = true
		return resp
	}
	_ = resp.Body.Close()
	x.ln.Lock()
	defer x.ln.Unlock()
	x.s.stats.fellBack.Add(1)
	x.s.cfg.Logger.WarnContext(ctx, "request_fell_back", "lane", x.ln.ID)
	x.ln.Swap, x.ln.Grafts, x.ln.Hidden = nil, nil, nil
	a := *x.attach()
	a.ready, a.working = nil, false
	x.ln.Attached = &a // one that is being made ends with what was known before
	x.hidden, x.sent = nil, x.original
	x.save(ctx)
	return again
}
