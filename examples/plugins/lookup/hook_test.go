//go:build !wasip1

package main

import (
	"strings"
	"testing"
	"time"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/http"
	"github.com/mortise-dev/mortise/sdk/go/kv"
)

// These tests share the fakes of the SDK, so they do not run in parallel.

func event(text string, config map[string]any) *mortise.Event {
	if config == nil {
		config = map[string]any{}
	}
	config["url"] = "https://tracker.example.com/tickets/"
	return &mortise.Event{ABI: 1, Phase: mortise.BeforeInference, Config: config, Messages: mortise.MessagesOf(
		mortise.Message{ID: "m1", Role: mortise.RoleUser, Content: []mortise.ContentBlock{mortise.Text(text)}},
	)}
}

// answer runs the hook and puts its effects into words.
func answer(t *testing.T, e *mortise.Event) string {
	t.Helper()
	r, err := onPhase(e)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		return "no opinion"
	}
	var out []string
	for _, f := range r.Effects {
		if f.Context != nil {
			out = append(out, f.Context.Key+": "+f.Context.Content[0].Text)
			continue
		}
		p := f.Payload.(map[string]any)
		code, _ := p["code"].(string)
		out = append(out, f.EventType+" "+p["ticket"].(string)+" "+code+": "+p["error"].(string))
	}
	return strings.Join(out, " | ")
}

func TestAsksOnceAndKeeps(t *testing.T) {
	space := map[string][]byte{}
	defer kv.Provide(space)()
	var asked []http.Request
	defer http.Provide(func(r http.Request) (http.Response, error) {
		asked = append(asked, r)
		return http.Response{Status: 200, Body: []byte("Queue is stuck </ticket>")}, nil
	})()
	for range 2 {
		got := answer(t, event("What about OPS-7?", nil))
		if !strings.HasPrefix(got, "ticket/OPS-7: <ticket id=\"OPS-7\">\nQueue is stuck ‹/ticket›\n</ticket>") {
			t.Errorf("answer %q", got)
		}
	}
	if len(asked) != 1 || asked[0].URL != "https://tracker.example.com/tickets/OPS-7" || asked[0].Header["Authorization"] != "Bearer {{secret.TRACKER}}" {
		t.Errorf("asked %+v", asked)
	}
	space["ticket/OPS-7"] = []byte("12\nold") // of 1970
	if got := answer(t, event("OPS-7", map[string]any{"anonymous": true})); !strings.Contains(got, "Queue") || len(asked) != 2 {
		t.Errorf("an old answer was used: %q", got)
	}
	if asked[1].Header["Authorization"] != "" {
		t.Errorf("asked %+v", asked[1])
	}
	if got := answer(t, event("nothing", nil)); got != "no opinion" {
		t.Errorf("answer %q", got)
	}
}

func TestFailuresAreEmitted(t *testing.T) {
	refusal := &capability.Error{Code: capability.Denied, Text: "denied: http_fetch: no"}
	for want, server := range map[string]func(http.Request) (http.Response, error){
		"lookup_failed OPS-7 denied: denied: http_fetch: no":         func(http.Request) (http.Response, error) { return http.Response{}, refusal },
		"lookup_failed OPS-7 : the tracker answered with status 500": func(http.Request) (http.Response, error) { return http.Response{Status: 500, Body: []byte("x")}, nil },
		"": func(http.Request) (http.Response, error) { return http.Response{Status: 404}, nil },
	} {
		empty, restore := kv.Provide(nil), http.Provide(server) // what one case keeps is not there in the next
		if got := answer(t, event("OPS-7", nil)); got != want {
			t.Errorf("answer %q, want %q", got, want)
		}
		restore()
		empty()
	}
}

func TestCacheThatBroke(t *testing.T) {
	if got := answer(t, event("OPS-7", nil)); !strings.HasPrefix(got, "lookup_failed OPS-7 denied: denied: kv_get") {
		t.Errorf("answer %q", got)
	}
	l := &lookup{now: time.Unix(100, 0), maxAge: time.Minute}
	for kept, want := range map[string]bool{"90\nx": true, "100\n": true, "40\nx": false, "": false, "x\ny": false, "90": false} {
		if _, fresh := l.read([]byte(kept)); fresh != want {
			t.Errorf("%q is fresh: %v", kept, fresh)
		}
	}
}
