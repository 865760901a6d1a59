package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// event is one event of a stream. Chunks are those that carry content. Stated is the count of tokens that the event gives, which is billed.
type event struct {
	name           string
	data           any
	chunk          bool
	tokens, stated int64
}

// answer asks the model and sends what it answers.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p *protocol, a *ask, body []byte) {
	if a.background {
		s.begin(w, r, p, a, body)
		return
	}
	s.play(w, r, p, a, body)
}

// play asks the model and sends what it answers, in the foreground.
func (s *Server) play(w http.ResponseWriter, r *http.Request, p *protocol, a *ask, body []byte) {
	s.mu.Lock()
	s.n++
	n := s.n
	s.mu.Unlock()
	ans := s.cfg.Reply(Query{
		API: p.api, Model: a.model, Stream: a.stream, System: a.system, Messages: a.messages, Tools: a.tools,
		N: n, Header: r.Header.Clone(), Body: body,
	})
	fault := Fault{}
	if ans.Fault != nil {
		fault = *ans.Fault
	}
	if fault.Status != 0 && fault.ErrorEventAfter == 0 || fault.ErrorEventAfter != 0 && !a.stream {
		s.rejected(w, p, r, fault.failure(p.api))
		return
	}
	b := Bill{API: p.api, Model: a.model, IdempotencyKey: r.Header.Get("Idempotency-Key"), Failed: true}
	defer func() { s.bill(&b) }()
	if fault.Hang && fault.CutAfter == 0 {
		<-r.Context().Done()
		return
	}
	s.cached(p, a)
	rep := s.compose(a, &ans)
	a.bill.CompletionTokens, a.bill.ThinkingTokens = rep.usage.CompletionTokens, rep.usage.ThinkingTokens
	a.bill.TotalTokens = a.bill.PromptTokens + a.bill.CompletionTokens
	out := player{w: w, p: p, fault: fault, pace: ans.Pace}
	defer func() {
		if !out.whole && !a.background {
			s.unkeep(a)
		}
		b.Usage, b.Failed = a.bill, !out.whole
		if sent := max(out.sent, out.stated); sent < b.Usage.CompletionTokens && !out.whole {
			b.Usage.CompletionTokens = sent
			b.Usage.ThinkingTokens = min(b.Usage.ThinkingTokens, sent)
			b.Usage.TotalTokens = b.Usage.PromptTokens + sent
		}
		b.Cost = a.cost + float64(b.Usage.CompletionTokens)*a.spec.Output/1e6
	}()
	events, whole := p.events(s, a, rep), p.whole(s, a, rep)
	switch {
	case a.background:
		out.plain(r.Context(), events, whole)
		if out.whole {
			s.finished(a, whole, events)
		}
		return
	case a.keeps: // before its last byte: the next request may come at once
		s.finished(a, whole, events)
	}
	if a.stream {
		out.stream(r.Context(), events)
	} else {
		out.plain(r.Context(), events, whole)
	}
}

// player sends an answer, with what goes wrong.
type player struct {
	w     http.ResponseWriter
	p     *protocol
	fault Fault
	pace  time.Duration
	// sent counts tokens, chunks content; stated is the count of tokens that events gave so far; whole is an answer that was sent to its end.
	sent, stated int64
	chunks       int
	whole        bool
}

// stream sends events.
func (o *player) stream(ctx context.Context, events []event) {
	o.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	o.w.Header().Set("Cache-Control", "no-cache")
	for _, e := range events {
		if e.chunk && !o.next(ctx) || !o.write(ctx, e) {
			return
		}
		o.sent, o.stated = o.sent+e.tokens, max(o.stated, e.stated)
		if !e.chunk {
			continue
		}
		o.chunks++
		if o.chunks == o.fault.ErrorEventAfter {
			for _, e := range o.p.errorEvents(o.fault.failure(o.p.api)) {
				o.write(ctx, e)
			}
			return
		}
	}
	o.whole = true
}

// next waits until a chunk is due, and breaks where the fault says so.
func (o *player) next(ctx context.Context) bool {
	if o.fault.CutAfter > 0 && o.chunks >= o.fault.CutAfter {
		if o.fault.Hang {
			<-ctx.Done()
			return false
		}
		panic(http.ErrAbortHandler)
	}
	if o.pace <= 0 {
		return true
	}
	timer := time.NewTimer(o.pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (o *player) write(ctx context.Context, e event) bool {
	if ctx.Err() != nil {
		return false
	}
	data, ok := e.data.(string)
	if !ok {
		b, err := json.Marshal(e.data)
		if err != nil {
			return false
		}
		data = string(b)
	}
	name := ""
	if e.name != "" {
		name = "event: " + e.name + "\n"
	}
	if _, err := fmt.Fprintf(o.w, "%sdata: %s\n\n", name, data); err != nil {
		return false
	}
	return http.NewResponseController(o.w).Flush() == nil
}

// plain sends an answer in one piece, at the time at which its stream would have ended.
func (o *player) plain(ctx context.Context, events []event, whole any) {
	b, err := json.Marshal(whole)
	if err != nil {
		return
	}
	o.w.Header().Set("Content-Type", "application/json")
	o.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if o.fault.CutAfter > 0 && !o.fault.Hang {
		_, _ = o.w.Write(b[:len(b)/2])
		panic(http.ErrAbortHandler)
	}
	for _, e := range events {
		if e.chunk && !o.next(ctx) {
			return
		}
		o.sent += e.tokens
	}
	_, err = o.w.Write(b)
	o.whole = err == nil
}
