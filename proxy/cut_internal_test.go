package proxy

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// systemItem is a system message in the list, as models from Opus 4.8 on take it.
const systemItem = `{"role":"system","content":"a word of the harness"}`

// placed checks that system messages in a list are behind a user's and before an assistant's, or at the end, and returns the body without
// them, for the fake takes none.
func placed(t *testing.T, p wire.Protocol, body []byte) []byte {
	t.Helper()
	r, err := wire.Parse(p, body)
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if p != wire.Messages {
		return body
	}
	var cut []wire.Splice
	for i := range r.Items {
		if r.Items[i].Role != wire.System {
			continue
		}
		if i == 0 || r.Items[i-1].Role != wire.User || i+1 < len(r.Items) && r.Items[i+1].Role != wire.Assistant {
			t.Fatalf("system message %d of %d is misplaced: %s", i, len(r.Items), body)
		}
		cut = append(cut, wire.Cut(body, r.Items[i].Span))
	}
	return wire.Apply(body, cut)
}

// transcript is a random conversation that a provider accepts.
func transcript(rnd *rand.Rand, p wire.Protocol) string {
	var items []string
	id := 0
	text := func() string { return strings.Repeat("some words ", 1+rnd.IntN(20)) }
	user := func() {
		n := 1 + rnd.IntN(2)
		var texts []string
		for range n {
			texts = append(texts, text())
		}
		items = append(items, string(wire.UserItem(p, nil, texts...)))
	}
	if p == wire.Chat {
		items = append(items, `{"role":"system","content":"be good"}`)
	}
	if p == wire.Responses {
		items = append(items, `{"type":"message","role":"developer","content":[{"type":"input_text","text":"be good"}]}`)
	}
	user()
	for range 1 + rnd.IntN(6) {
		for range rnd.IntN(4) { // rounds of calls
			a := wire.Answer{Protocol: p}
			if rnd.IntN(2) == 0 {
				a.Blocks = append(a.Blocks, block(p, text()))
			}
			var results [][]byte
			for range 1 + rnd.IntN(3) {
				id++
				o := wire.Out{Type: wire.TypeCall, ID: fmt.Sprintf("call_%d", id), Name: "bash"}
				args := []byte(`{"command":"x"}`)
				switch p {
				case wire.Messages:
					o.Raw = []byte(`{"type":"tool_use","id":"` + o.ID + `","name":"bash","input":{"command":"x"}}`)
				case wire.Responses:
					o.Raw = []byte(`{"type":"function_call","call_id":"` + o.ID + `","name":"bash","arguments":"{}"}`)
				default:
					o.Raw = wire.ChatCall(&o, args)
				}
				a.Blocks = append(a.Blocks, o)
				results = append(results, wire.ResultBlock(p, &o, text(), rnd.IntN(5) == 0))
			}
			for _, it := range a.Items(func(*wire.Out) bool { return true }) {
				items = append(items, string(it))
			}
			for _, it := range resultItems(p, results) {
				items = append(items, string(it))
			}
			if p == wire.Messages && rnd.IntN(8) == 0 {
				items = append(items, systemItem)
			}
		}
		a := wire.Answer{Protocol: p, Blocks: []wire.Out{block(p, text())}}
		items = append(items, string(a.Items(func(*wire.Out) bool { return true })[0]))
		user()
		if p == wire.Messages && rnd.IntN(4) == 0 {
			items = append(items, systemItem)
		}
	}
	tools := string(wire.ToolJSON(p, recall()))
	list := strings.Join(items, ",")
	if p == wire.Responses {
		return `{"model":"gpt-5","store":false,"input":[` + list + `],"tools":[` + tools + `]}`
	}
	model := `"gpt-5"`
	if p == wire.Messages {
		model = `"claude-sonnet-4-5","max_tokens":10`
		last := strings.LastIndex(strings.TrimSuffix(list, ","+systemItem), `}]}`)
		list = list[:last] + `,"cache_control":{"type":"ephemeral","ttl":"1h"}` + list[last:]
	}
	return `{"model":` + model + `,"messages":[` + list + `],"tools":[` + tools + `]}`
}

func block(p wire.Protocol, text string) wire.Out {
	o := wire.Out{Type: wire.TypeText, Text: strings.TrimSpace(text)}
	switch p {
	case wire.Messages:
		o.Raw = append(append([]byte(`{"type":"text","text":`), wire.Quote(o.Text)...), '}')
	case wire.Responses:
		o.Raw = append(append([]byte(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":`), wire.Quote(o.Text)...), "}]}"...)
	case wire.Chat:
	}
	return o
}

// A compaction at each possible cut of random conversations is a request that the strict fakes accept, and keeps the
// latest turn as it was (acceptance 26, 40, 42; F10, F37, F38).
func TestCuts(t *testing.T) {
	t.Parallel()
	up, err := providertest.New(providertest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Close() })
	n := 1000
	if testing.Short() || UnderRace { // make test-plain has all
		n = 100
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	total := 0
	for i := range n {
		p := []wire.Protocol{wire.Messages, wire.Responses, wire.Chat}[i%3]
		body := []byte(transcript(rnd, p))
		r, err := wire.Parse(p, body)
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		head, places := cuts(r, &lane.State{})
		for _, cut := range places {
			total++
			turn := -1
			if rnd.IntN(2) == 0 {
				turn = lastSpoken(r, cut)
			}
			item, plain := standIn(r, head, cut, turn, nil, standInText("what happened", cut-head, handles(0, head, cut)))
			st := &lane.State{Swap: &lane.Swap{From: head, To: cut, Item: item, Plain: plain}}
			x := &exchange{proto: p}
			out := wire.Apply(body, x.splices(r, st))
			if status, text := ask(t, up, p, placed(t, p, out)); status != http.StatusOK {
				t.Fatalf("%s, cut %d of %d: %d %s\n%s\n%s", p, cut, len(r.Items), status, text, body, out)
			}
			if tail := body[r.Items[cut].From:]; !bytes.HasSuffix(out, tail) {
				t.Fatalf("the tail changed: %s", out)
			}
			if again := wire.Apply(body, x.splices(r, st)); !bytes.Equal(again, out) {
				t.Fatal("the same splices have other bytes")
			}
		}
	}
	t.Logf("%d conversations, %d cuts", n, total)
}

func lastSpoken(r *wire.Request, before int) int {
	for i := before - 1; i >= 0; i-- {
		if spoken(r, i) {
			return i
		}
	}
	return -1
}

func ask(t *testing.T, up *providertest.Server, p wire.Protocol, body []byte) (int, string) {
	t.Helper()
	path := map[wire.Protocol]string{wire.Messages: "/v1/messages", wire.Responses: "/v1/responses", wire.Chat: "/v1/chat/completions"}[p]
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if p == wire.Messages {
		r.Header.Set("X-Api-Key", up.Key())
		r.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		r.Header.Set("Authorization", "Bearer "+up.Key())
	}
	w := httptest.NewRecorder()
	up.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A system message at the end of the list, which is the harness's, neither hides a user's turn nor gets what plugins add (F37).
func TestUserTurn(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"messages":[{"role":"user","content":"go"},` + systemItem + `]}`: true,
		`{"messages":[{"role":"user","content":"go"}]}`:                    true,
		`{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]},` + systemItem + `]}`: false,
	} {
		r, err := wire.Parse(wire.Messages, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		x := &exchange{proto: wire.Messages, req: r, items: len(r.Items), ln: &lane.Lane{State: &lane.State{}}}
		if x.userTurn() != want {
			t.Errorf("a user's turn: %t: %s", !want, body)
		}
		add := phases.Outcome{Appended: []abi.Message{{Content: []abi.ContentBlock{abi.Text("more")}}}}
		if !x.effects(&add) || len(x.ln.Edits) != 1 || r.Items[x.ln.Edits[0].Item].Role == wire.System {
			t.Errorf("added to %+v: %s", x.ln.Edits, body)
		}
	}
}
