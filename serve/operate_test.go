package serve_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/compaction/trial"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store/memstore"
)

func ready(context.Context) error { return nil }

func reload(context.Context) ([]string, error) {
	return nil, &serve.Refused{Reason: `unknown key "colour"`, Hint: "did you mean color?"}
}

// shelf has a plugin and a policy.
type shelf struct{}

func (*shelf) List(context.Context) []serve.Module {
	return []serve.Module{{Name: "guard", Role: serve.RolePlugin}, {Name: "digest", Role: "summarizer"}}
}

func (*shelf) Swap(_ context.Context, name string, wasm []byte) (serve.Swapped, error) {
	switch string(wasm) {
	case "\x00asm good":
		return serve.Swapped{From: "1", To: name, Trial: &trial.Report{OldSurvival: 0.75, NewSurvival: 0.8}}, nil
	case "\x00asm lost":
		return serve.Swapped{}, errors.New("open /root/modules: no space left")
	}
	return serve.Swapped{}, &serve.Refused{Reason: "it traps on request 2", Hint: "see its trial"}
}

func (*shelf) RollBack(_ context.Context, name string) (serve.Swapped, error) {
	return serve.Swapped{From: name, To: "1"}, nil
}

func (*shelf) History(string) []serve.Change {
	return []serve.Change{{At: time.Unix(1, 0).UTC(), From: "1", To: "2", Kind: "swapped"}}
}

// TestModules: plugins and policies are listed apart, swapped, refused with a reason, and rolled back.
func TestModules(t *testing.T) {
	t.Parallel()
	w := whole(t, nil)
	for base, name := range map[string]string{"/v1/plugins": "guard", "/v1/policies": "digest"} {
		var list struct{ Modules []serve.Module }
		w.want(http.StatusOK, http.MethodGet, base, "").decode(t, &list)
		if len(list.Modules) != 1 || list.Modules[0].Name != name {
			t.Errorf("%s: %+v", base, list)
		}
		var out serve.Swapped
		w.want(http.StatusOK, http.MethodPut, base+"/"+name, "\x00asm good", "Content-Type", "application/wasm").decode(t, &out)
		if out.From != "1" || out.To != name || out.Trial == nil || out.Trial.NewSurvival != 0.8 {
			t.Errorf("%s: swapped %+v", base, out)
		}
		if p := w.refused(http.StatusUnprocessableEntity, http.MethodPut, base+"/"+name, "bad", "Content-Type", "application/wasm"); p.Detail != "it traps on request 2" {
			t.Errorf("%s: %+v", base, p)
		}
		w.refused(http.StatusInternalServerError, http.MethodPut, base+"/"+name, "\x00asm lost", "Content-Type", "application/wasm")
		w.refused(http.StatusNotFound, http.MethodPut, base+"/other", "\x00asm good", "Content-Type", "application/wasm")
		w.want(http.StatusOK, http.MethodPost, base+"/"+name+"/rollback", "")
		var history struct{ Changes []serve.Change }
		w.want(http.StatusOK, http.MethodGet, base+"/"+name+"/history", "").decode(t, &history)
		if len(history.Changes) != 1 {
			t.Errorf("%s: %+v", base, history)
		}
	}
	w.want(http.StatusOK, http.MethodPost, "/v1/policies/summarizer/rollback", "")
	w.refused(http.StatusNotFound, http.MethodPost, "/v1/plugins/digest/rollback", "")
	if p := w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/reload", ""); !strings.Contains(p.Detail, "colour") || p.Hint == "" {
		t.Errorf("the problem is %+v", p)
	}
	if a := w.want(http.StatusOK, http.MethodGet, "/metrics", ""); string(a.body) != "up 1\n" {
		t.Errorf("metrics are %s", a.body)
	}
}

// TestDeadLetters: a run that fails for good is a dead letter, which is replayed or discarded.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	dead := map[string]ids{}
	for range 3 {
		d := w.submit("/v1/runs", say("fail"))
		w.follow(d.Run, "").until("settled")
		dead[d.Dispatch] = d
	}
	type page struct {
		Letters []struct {
			Dispatch string `json:"dispatch_id"`
			Error    string
			Attempts int
		} `json:"dead_letters"`
		Next string
	}
	seen := map[string]bool{}
	for next := ""; ; {
		var p page
		w.want(http.StatusOK, http.MethodGet, "/v1/dead-letters?limit=1&after="+next, "").decode(t, &p)
		for _, l := range p.Letters {
			if l.Error == "" || l.Attempts != 1 || seen[l.Dispatch] {
				t.Errorf("the letter is %+v", l)
			}
			seen[l.Dispatch] = true
		}
		if next = p.Next; next == "" {
			break
		}
	}
	if len(seen) != len(dead) {
		t.Errorf("%d dead letters", len(seen))
	}
	var first ids
	for _, first = range dead {
	}
	var again ids
	w.want(http.StatusAccepted, http.MethodPost, "/v1/dead-letters/"+first.Dispatch+"/replay", "").decode(t, &again)
	if again.Run == first.Run || again.Thread != first.Thread {
		t.Errorf("replayed as %+v", again)
	}
	if list := w.follow(again.Run, "").until("settled"); strings.Count(told(list), "run_started") != 1 {
		t.Errorf("the replayed run is %s", told(list))
	}
	w.want(http.StatusNoContent, http.MethodDelete, "/v1/dead-letters/"+first.Dispatch, "")
	w.refused(http.StatusConflict, http.MethodPost, "/v1/dead-letters/"+first.Dispatch+"/replay", "")
	w.refused(http.StatusNotFound, http.MethodDelete, "/v1/dead-letters/none", "")
	w.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/dead-letters?after=x", "")
}

// TestDrain: a server that drains ends its streams, refuses runs, and waits for those under way,
// whose rest a client reads in another process.
func TestDrain(t *testing.T) {
	t.Parallel()
	one := newWorld(t, options{})
	run := one.submit("/v1/threads/t/runs", say("hold")).Run
	<-one.mind.begun
	two := newWorld(t, options{store: one.store, mind: one.mind}) // it comes when the run is taken
	s := one.follow(run, "")
	list := s.until("step_started")
	var out struct{ Executing int }
	one.want(http.StatusAccepted, http.MethodPost, "/v1/drain", "").decode(t, &out)
	<-one.server.Draining()
	list = append(list, s.rest()...)
	if out.Executing != 1 || list[len(list)-1].name == "settled" {
		t.Errorf("%d runs are under way, the stream is %s", out.Executing, told(list))
	}
	for _, path := range []string{"/v1/runs", "/v1/threads/t/runs"} {
		if a := one.want(http.StatusServiceUnavailable, http.MethodPost, path, say("say hi")); a.Header.Get("Retry-After") == "" {
			t.Errorf("the header is %v", a.Header)
		}
	}
	one.refused(http.StatusServiceUnavailable, http.MethodGet, "/v1/runs/"+run+"/events", "")
	one.refused(http.StatusServiceUnavailable, http.MethodGet, "/readyz", "")
	one.want(http.StatusOK, http.MethodGet, "/healthz", "")
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	if err := one.server.Drain(hasty); err == nil {
		t.Error("it has drained with a run under way")
	}
	there := two.follow(run, list[len(list)-1].id)
	close(one.mind.release)
	must(t, one.server.Drain(t.Context()))
	there.until("settled")
}

// TestStatus: the status counts what is in the store.
func TestStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{serve: func(c *serve.Config) {
		c.Ready, c.Version, c.Modules = ready, "v1.2.3", &shelf{}
		c.Facts = func() serve.Facts {
			return serve.Facts{Store: "memory", Compactions: 2, Servers: []serve.ServerInfo{{Name: "files", State: "ready"}}}
		}
	}})
	run := w.submit("/v1/threads/t/runs", say("hold")).Run
	<-w.mind.begun
	s := w.follow(run, "")
	s.until("run_started")
	w.submit("/v1/threads/t/runs", say("say next"))
	var out serve.Status
	w.want(http.StatusOK, http.MethodGet, "/v1/status", "").decode(t, &out)
	if out.Streams != 1 || out.Executing != 1 || out.Dispatches["claimed"] != 1 || out.Dispatches["queued"] != 1 || out.Version != "v1.2.3" || len(out.Agents) != 1 || out.Draining {
		t.Errorf("the status is %+v", out)
	}
	if out.Queued != 1 || out.DeadLetters != 0 || out.Store != "memory" || out.Compactions != 2 || len(out.Servers) != 1 || len(out.Modules) != 2 {
		t.Errorf("the status is %+v", out)
	}
	w.want(http.StatusOK, http.MethodGet, "/readyz", "")
	close(w.mind.release)
	s.until("settled")
}

// TestOutage: without its store the server answers 503 and when to come again.
func TestOutage(t *testing.T) {
	t.Parallel()
	down := make(chan struct{})
	failing := func(context.Context, string) mailboxtest.Fault {
		select {
		case <-down:
			return mailboxtest.FaultBefore
		default:
			return mailboxtest.FaultNone
		}
	}
	faulty := newWorld(t, options{store: &mailboxtest.Faulty{Store: memstore.New(), Plan: failing}, idle: true})
	faulty.want(http.StatusOK, http.MethodGet, "/v1/status", "")
	id := faulty.submit("/v1/threads/t/runs", say("say hi"))
	close(down)
	for _, r := range []string{"GET /v1/threads/t", "GET /v1/runs/" + id.Run, "GET /v1/threads/t/messages", "GET /v1/dead-letters", "POST /v1/runs/" + id.Run + "/cancel"} {
		method, path, _ := strings.Cut(r, " ")
		if a := faulty.do(method, path, ""); a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", r, a.StatusCode, a.body)
		}
	}
	faulty.refused(http.StatusServiceUnavailable, http.MethodPost, "/v1/runs", say("say hi"))
}
