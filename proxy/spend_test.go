package proxy_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// asking is a summarizer that asks a model.
type asking struct {
	model llm.Model
	// words are sent with each request.
	words int

	mu   sync.Mutex
	errs []error
}

func (a *asking) Summarize(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
	r, err := a.model.Infer(ctx, llm.Request{Model: "claude-sonnet-4-5", Messages: []abi.Message{
		{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("SUMMARIZE " + strings.Repeat("all of it ", a.words/3))}},
	}})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, err)
	if err != nil {
		return nil, err
	}
	return &abi.Summary{Text: "A summary by a model: " + r.Message.Text()}, nil
}

func (a *asking) said(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.errs, func(err error) bool { return err != nil && strings.Contains(err.Error(), text) })
}

// A summary that needs a model is asked for with the client's API key only by permission and within its budget an hour, never with a login and
// never after that key got a 429; the client's traffic goes on, and what was asked is in the ledger (F36).
func TestClientKey(t *testing.T) {
	t.Parallel()
	const enough = 1_000_000
	for _, c := range []struct {
		name   string
		tokens int64
		header []string
		// limited are requests of the client that get a 429.
		limited bool
		why     string
	}{
		{"permitted", enough, nil, false, ""},
		{"dear", enough, nil, false, ""},
		{"not permitted", 0, nil, false, "may not be used"},
		{"budget", 15_000, nil, false, "15000 tokens an hour"},
		{"login", enough, []string{"Authorization", "Bearer sk-ant-oat01-x"}, false, "has a login"},
		{"token", enough, []string{"Authorization", "Bearer eyJh.eyJi.c2ln"}, false, "has a login"},
		{"429", enough, nil, true, "status 429"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &upstreamLog{t: t, proto: wire.Messages}
			var mu sync.Mutex
			asked, rounds, limit := 0, 0, c.limited
			up, err := providertest.New(providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(q.Messages[0].Text(), "SUMMARIZE") {
					asked++
					return providertest.Answer{Content: []abi.ContentBlock{abi.Text("package p1 // call_1 and all the others")}}
				}
				if limit {
					limit = false
					return providertest.Answer{Fault: &providertest.Fault{Status: 429, Type: "rate_limit_error", Message: "slow down"}}
				}
				rounds++
				q.N = rounds
				return work(l, 100)(q)
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = up.Close() })
			model, err := anthropic.New(anthropic.Config{Key: "none", BaseURL: "http://client.invalid", HTTP: &http.Client{Transport: proxy.ClientKey{}}})
			if err != nil {
				t.Fatal(err)
			}
			s := &asking{model: llm.Watched(model, proxy.Observe, nil), words: 12_000}
			if c.name == "dear" {
				s.words *= 12
			}
			p := policy()
			p.Summarizer, p.Every = s, 2
			now := &clock{at: time.Unix(1_800_000_000, 0)}
			srv := start(t, up.URL(), proxy.Config{Compaction: p, ClientTokens: c.tokens, Act: true, Now: now.now})
			a := newAgent(t, wire.Messages, srv.url, true, append(c.header, "X-Session-Id", "s")...)
			a.say("go")
			if c.limited {
				resp, _ := post(t, a.url+a.path(), a.body(), a.header...)
				if resp.StatusCode != http.StatusTooManyRequests {
					t.Fatal(resp.Status)
				}
			}
			steps := 30
			if c.name == "budget" {
				steps = 55
			}
			for range steps {
				ans := a.step()
				settle(t, srv)
				now.add(30 * time.Second)
				a.answer(ans, func(w wire.Out) string { return "package p" + w.ID + strings.Repeat("some words of code. ", output/20) })
			}
			r := srv.Report()
			switch {
			case c.why == "" && (asked == 0 || r.Counts["swaps"] == 0 || r.Total.Own.Calls != int64(asked) || r.Total.Own.Units < 10_000):
				t.Errorf("asked %d times, own %+v, %v", asked, r.Total.Own, s.errs)
			case c.name == "dear" && (asked != 1 || r.Counts["swaps"] != 1): // it is put in, being paid for, and there is no other
				t.Errorf("asked %d times, %d swaps", asked, r.Counts["swaps"])
			case c.why != "" && !s.said(c.why):
				t.Errorf("asked %d times: %v", asked, s.errs)
			case c.why != "" && c.name != "budget" && asked != 0:
				t.Errorf("asked %d times", asked)
			case c.name == "budget" && asked != 1:
				t.Errorf("asked %d times within the budget", asked)
			}
			if r.Total.SavedWithout != nil && c.why == "" && *r.Total.SavedWithout > r.Total.Without.Units-r.Total.Machine.Units-r.Total.Own.Units+1 {
				t.Error("the saving leaves out what the proxy spent")
			}
		})
	}
}
