package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// full is a store that takes nothing.
type full struct{ *memstore.Store }

func (f full) Apply(context.Context, store.Batch) (uint64, error) { return 0, store.ErrInvalid }

// A store that is full stops no session, and is counted; without a store a session works too (acceptance 37, 39).
func TestStoreFull(t *testing.T) {
	t.Parallel()
	up := fake(t, nil)
	if _, err := proxy.New(context.Background(), proxy.Config{Store: full{memstore.New()}}); err == nil {
		t.Error("a proxy without its secret begins")
	}
	db := memstore.New()
	pre, err := proxy.New(context.Background(), proxy.Config{Store: db})
	if err != nil {
		t.Fatal(err)
	}
	_ = pre.Close(context.Background())
	s := start(t, up.URL(), proxy.Config{Store: full{db}, Runtime: runtimeOf(t, marker())})
	a := newAgent(t, wire.Messages, s.url, true)
	for i := range 3 {
		a.say(fmt.Sprint("turn ", i))
		a.step()
	}
	if s.Report().Counts["store_failures"] == 0 || len(s.Report().Lanes) != 1 {
		t.Error(s.Report())
	}
}

// hangingStore is a store that does not answer while it is down.
type hangingStore struct {
	*memstore.Store

	down atomic.Bool
	// given is the time that calls had while it was down: by the contexts, because the clock also counts what else the machine does.
	given atomic.Int64
}

func (h *hangingStore) wait(ctx context.Context) error {
	if h.down.Load() {
		deadline, ok := ctx.Deadline()
		if !ok {
			return errors.New("the call has no bound")
		}
		h.given.Add(int64(time.Until(deadline)))
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h *hangingStore) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if err := h.wait(ctx); err != nil {
		return 0, err
	}
	return h.Store.Apply(ctx, b)
}

func (h *hangingStore) Read(ctx context.Context, id string, q store.Query) (store.Snapshot, error) {
	if err := h.wait(ctx); err != nil {
		return store.Snapshot{}, err
	}
	return h.Store.Read(ctx, id, q)
}

func (h *hangingStore) Scan(ctx context.Context, q store.Scan) ([]store.Ref, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.Store.Scan(ctx, q)
}

// A store that does not answer costs one request its time, and those after it hardly any; what plugins took out stays out meanwhile and later.
func TestStoreHangs(t *testing.T) {
	t.Parallel()
	l, db := &leaks{}, &hangingStore{Store: memstore.New()}
	up := fake(t, func(q providertest.Query) providertest.Answer {
		l.add(q.Body)
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("ok")}}
	})
	cfg := l.config(t, db.Store, masking(func() error { return nil }))
	cfg.Store = db
	s := start(t, up.URL(), cfg)
	a := newAgent(t, wire.Messages, s.url, false, "X-Session-Id", "s")
	turn := func() time.Duration {
		before := db.given.Load()
		a.say("the key is " + hunter)
		a.step()
		wait(t, "the request ends", func() bool { return s.Report().Counts["active"] == 0 })
		return time.Duration(db.given.Load() - before)
	}
	turn()
	db.down.Store(true)
	if given := turn(); given < time.Second {
		t.Errorf("the first request gives the store %s", given)
	}
	for range 2 {
		if given := turn(); given > time.Second {
			t.Errorf("a request gives the store %s while it is down", given)
		}
	}
	db.down.Store(false)
	turn()
	if len(l.bodies) != 5 || s.Report().Counts["store_failures"] == 0 || len(s.Report().Lanes) != 1 {
		t.Errorf("%d requests, %+v", len(l.bodies), s.Report())
	}
	l.check(t, db.Store, s)
}

// Credentials are in no log, report or stored byte (acceptance 12).
func TestCredentials(t *testing.T) {
	t.Parallel()
	const key = providertest.DefaultKey
	var mu sync.Mutex
	var logs bytes.Buffer
	w := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logs.Write(p)
	})
	up := fake(t, func(q providertest.Query) providertest.Answer {
		return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprint("c", q.N), "bash", "x")}}
	})
	db := memstore.New()
	cfg := proxy.Config{Store: db, Logger: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})), Runtime: runtimeOf(t, gate(func(*abi.ToolCall) *abi.Reply { return nil }))}
	s := start(t, up.URL(), cfg)
	for _, p := range []wire.Protocol{wire.Messages, wire.Chat} {
		a := newAgent(t, p, s.url, true)
		a.say("hi")
		a.step()
	}
	dead := start(t, "http://127.0.0.1:1", cfg)
	_, body := post(t, dead.url+"/v1/messages?key="+key, hello)
	if !contains(body, "cannot be reached") {
		t.Errorf("%s", body)
	}
	report, _ := json.Marshal(s.Report())
	texts := append(logged(t, db), string(report), string(body), logs.String())
	for _, text := range texts {
		if strings.Contains(text, key) {
			t.Errorf("a credential in %.300s", text)
		}
	}
	if logs.Len() == 0 {
		t.Error("nothing was logged")
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// slow is a summarizer that hangs, fails, or talks nonsense.
type slow struct{ mode string }

func (s slow) Summarize(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
	switch s.mode {
	case "hangs":
		<-ctx.Done()
		return nil, ctx.Err()
	case "fails":
		return nil, errors.New("no model")
	case "panics":
		panic("broken")
	}
	return &abi.Summary{Text: "\xff\x00"}, nil
}

// A background model that fails, hangs or talks nonsense is not seen by the client (acceptance 43).
func TestBackgroundFails(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"hangs", "fails", "nonsense"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := &upstreamLog{t: t, proto: wire.Messages}
			up := fake(t, work(l, 10))
			c := policy()
			c.Policy.ThresholdTokens, c.Policy.KeepRecentTokens, c.Policy.SummaryTokens = 20_000, 4000, 1000
			c.Summarizer, c.Timeout = slow{mode}, 200*time.Millisecond
			s := start(t, up.URL(), proxy.Config{Compaction: c})
			a := newAgent(t, wire.Messages, s.url, true, "X-Session-Id", "s")
			session(t, s, a, 1)
			r := s.Report()
			if mode != "nonsense" && (l.breaks != 0 || r.Counts["compactions_failed"] == 0) {
				t.Errorf("%d breaks, %v", l.breaks, r.Counts)
			}
		})
	}
}

// A plugin that hangs costs its deadline (F17), and the request goes through.
func TestHanging(t *testing.T) {
	t.Parallel()
	up := fake(t, nil)
	rt, err := phases.New(phases.Config{HookTimeout: 500 * time.Millisecond, Plugins: []phases.Plugin{hook{
		name: "hangs", hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, OnFailure: abi.FailIgnore}},
		answer: func(*abi.Event) (*abi.Reply, error) { select {} },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, up.URL(), proxy.Config{Runtime: rt})
	a := newAgent(t, wire.Messages, s.url, true)
	a.say("hello")
	begin := time.Now()
	a.step()
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("took %s", took)
	}
}

// Blocks, deltas and events of unknown types pass, also next to a call that is decided about (F7, F8).
func TestUnknownBlocks(t *testing.T) {
	t.Parallel()
	events := []string{
		`{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"hologram","depth":3}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"beam","x":[1]}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}}`, `{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"bash","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, `{"type":"content_block_stop","index":3}`,
		`{"type":"novelty"}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use","container":{"id":"c"}},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`,
	}
	var stream strings.Builder
	for _, e := range events {
		fmt.Fprintf(&stream, "event: x\r\ndata: %s\r\n\r\n", e)
	}
	up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(stream.String()))
	})
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{})})
	if _, got := post(t, s.url+"/v1/messages", hello); string(got) != stream.String() {
		t.Errorf("got %q", got)
	}
}

// Errors and rate limits pass as they are, once (F30, and section 1 of the specification).
func TestUpstreamErrors(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 413, 429, 500, 529} {
		up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Anthropic-Ratelimit-Tokens-Reset", "soon")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"x","message":"m%d"}}`, status)
		})
		s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{}), Compaction: policy()})
		resp, body := post(t, s.url+"/v1/messages", hello)
		if resp.StatusCode != status || resp.Header.Get("Retry-After") != "7" || resp.Header.Get("Anthropic-Ratelimit-Tokens-Reset") != "soon" || !contains(body, fmt.Sprint("m", status)) {
			t.Errorf("%d: %s %s %v", status, resp.Status, body, resp.Header)
		}
		if n := len(up.bodies); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
}

// A request that counts tokens is changed as the requests of its lane are (F27).
func TestCount(t *testing.T) {
	t.Parallel()
	l := &upstreamLog{t: t, proto: wire.Messages}
	up := fake(t, work(l, 30))
	s := start(t, up.URL(), proxy.Config{Compaction: policy()})
	a := newAgent(t, wire.Messages, s.url, true, "X-Session-Id", "s")
	session(t, s, a, 1)
	a.say("more")
	var counted struct {
		Tokens int64 `json:"input_tokens"`
	}
	body := a.body()
	body = strings.Replace(strings.Replace(body, `,"max_tokens":3000`, "", 1), `,"stream":true`, "", 1)
	resp, raw := post(t, s.url+"/v1/messages/count_tokens", body, "X-Session-Id", "s")
	if err := json.Unmarshal(raw, &counted); err != nil {
		t.Fatalf("%s %s", resp.Status, raw)
	}
	lanes := s.Report().Lanes[0].Calls
	ans := a.step()
	if counted.Tokens != ans.Usage.Prompt() || s.Report().Counts["swaps"] == 0 || lanes != 30 {
		t.Errorf("counted %d, used %d; %v", counted.Tokens, ans.Usage.Prompt(), s.Report().Counts)
	}
}

// The sum of the ledger is the fake's bill (acceptance 44, 46).
func TestLedger(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		up := fake(t, func(q providertest.Query) providertest.Answer {
			if q.N%2 == 1 {
				return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprint("h", q.N), "lookup", "x")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
		})
		s := start(t, up.URL(), proxy.Config{Tools: &offered{}, Runtime: runtimeOf(t)})
		a := newAgent(t, p, s.url, stream)
		var shown int64
		for i := range 4 {
			a.say(fmt.Sprint("turn ", i, strings.Repeat(" words", 2000)))
			shown += a.step().Usage.Output
		}
		wait(t, "the end", func() bool { return s.Report().Counts["active"] == 0 })
		var want, outputs int64
		for _, b := range up.Bills() {
			want += b.Usage.PromptTokens
			outputs += b.Usage.CompletionTokens
		}
		got := s.Report().Total.Paid
		if got.Usage.Prompt() != want || got.Usage.Output != outputs || got.Calls != 8 || shown != outputs {
			t.Errorf("the ledger has %+v, the bill %d and %d, shown %d", got, want, outputs, shown)
		}
	})
}

// Text streams on while a hidden tool is offered: the first text is with the client before the answer ends (F6), and a
// held call lets the text before it through.
func TestStreamsOn(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		i := strings.Index(streamed, "event: content_block_stop")
		_, _ = w.Write([]byte(streamed[:i]))
		_ = http.NewResponseController(w).Flush()
		<-hold
		_, _ = w.Write([]byte(streamed[i:]))
	}))
	defer up.Close()
	s := start(t, up.URL, proxy.Config{Tools: &offered{}, Runtime: runtimeOf(t, watching{})})
	body := strings.Replace(hello, `"stream"`, `"tools":[{"name":"bash","input_schema":{"type":"object"}}],"stream"`, 1)
	resp, err := http.Post(s.url+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got []byte
	buf := make([]byte, 512)
	for !contains(got, `"hello"`) {
		n, err := resp.Body.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
	}
	close(hold)
}
