package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/schema"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

// whole is a server that has all routes.
func whole(t *testing.T, more func(*serve.Config)) *world {
	t.Helper()
	kept := memstore.New()
	records, err := thread.NewRecorder(t.Context(), kept, thread.RecordConfig{})
	must(t, err)
	t.Cleanup(func() { _ = records.Close(context.WithoutCancel(t.Context())) })
	memory := compaction.NewMemory()
	return newWorld(t, options{
		runtime: func(c *mortise.Config) {
			c.Records = records
			c.Compaction = &compaction.Config{Policy: compaction.Policy{WindowTokens: 100_000}, Summarizer: compaction.Ledger{}, Store: memory}
		},
		serve: func(c *serve.Config) {
			c.Records, c.Sessions, c.Modules = thread.RecordsOf(kept), sessions{memory}, &shelf{}
			c.Reload, c.Ready = reload, ready
			c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") })
			if more != nil {
				more(c)
			}
		},
	})
}

type sessions struct{ *compaction.Memory }

func (s sessions) Events(_ context.Context, id string) ([]compaction.Event, error) {
	return s.Memory.Events(id), nil
}

func (s sessions) State(_ context.Context, id string) (compaction.State, uint64, error) {
	return s.Load(id)
}

// route is one of the document.
type route struct {
	method, path string
	Security     []map[string][]string
	RequestBody  *struct {
		Content map[string]struct{ Schema map[string]any }
	}
	Parameters []struct {
		Name, In string
		Schema   map[string]any
	}
	// fields are the schemas of the body's fields.
	fields    map[string]any
	Responses map[string]any
}

// scope is what the route wants of a token.
func (r route) scope() string { return r.Security[0]["bearer"][0] }

// takes reports what type of body the route has, or nothing.
func (r route) takes() string {
	if r.RequestBody == nil {
		return ""
	}
	for kind := range r.RequestBody.Content {
		return kind
	}
	return ""
}

// at is the path with its parameters.
func (r route) at(values map[string]string) string {
	path := r.path
	for name, v := range values {
		path = strings.ReplaceAll(path, "{"+name+"}", v)
	}
	return path
}

func routes(t *testing.T, w *world, header ...string) (list []route) {
	t.Helper()
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]route
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	w.want(http.StatusOK, http.MethodGet, "/openapi.json", "", header...).decode(t, &doc)
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("the document is of OpenAPI %q", doc.OpenAPI)
	}
	for path, item := range doc.Paths {
		for method, r := range item {
			r.method, r.path = strings.ToUpper(method), path
			if r.takes() == "application/json" {
				ref, _ := r.RequestBody.Content[r.takes()].Schema["$ref"].(string)
				r.fields = doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")].Properties
			}
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b route) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return list
}

// valid are bodies that routes take, by path.
func valid(r route) string {
	switch {
	case r.method == http.MethodPost && strings.HasSuffix(r.path, "/runs"):
		return say("say hi")
	case r.path == "/v1/runs/batch":
		return `{"runs":[{"run":{"input":"say hi"}}]}`
	case r.path == "/v1/ag-ui":
		return `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"say hi"}]}`
	case strings.HasSuffix(r.path, "/runs/{run}/decisions"):
		return `{"decisions":[{"target":"ticket","action":"allow"}]}`
	case r.takes() == "application/wasm":
		return "\x00asm"
	case r.takes() != "":
		return `{}`
	}
	return ""
}

var values = map[string]string{"thread": "t", "run": "none", "dispatch": "none", "name": "none", "handle": "none"}

// TestDocument: the document lists all routes, each of which is refused in the same way for the same fault.
func TestDocument(t *testing.T) {
	t.Parallel()
	w := whole(t, func(c *serve.Config) {
		withTokens(c)
		c.Limits.Body, c.Limits.Rate = 4096, -1
	})
	list := routes(t, w)
	var got []string
	for _, r := range list {
		got = append(got, r.method+" "+r.path)
		t.Run(r.method+r.path, func(t *testing.T) {
			t.Parallel()
			w := *w
			w.t = t
			w.faults(r)
		})
	}
	want := []string{
		"POST /v1/ag-ui", "GET /v1/dead-letters", "DELETE /v1/dead-letters/{dispatch}", "POST /v1/dead-letters/{dispatch}/replay", "POST /v1/drain",
		"GET /v1/plugins", "PUT /v1/plugins/{name}", "GET /v1/plugins/{name}/history", "POST /v1/plugins/{name}/rollback",
		"GET /v1/policies", "PUT /v1/policies/{name}", "GET /v1/policies/{name}/history", "POST /v1/policies/{name}/rollback",
		"POST /v1/pause", "POST /v1/resume", "POST /v1/runs/batch", "POST /v1/threads/{thread}/pause", "POST /v1/threads/{thread}/resume",
		"POST /v1/reload", "GET /v1/runs", "POST /v1/runs", "GET /v1/runs/{run}", "POST /v1/runs/{run}/cancel", "POST /v1/runs/{run}/decisions",
		"GET /v1/runs/{run}/events", "POST /v1/runs/{run}/interrupt", "GET /v1/status", "GET /v1/threads", "GET /v1/threads/{thread}", "PATCH /v1/threads/{thread}", "DELETE /v1/threads/{thread}",
		"GET /v1/threads/{thread}/compactions", "POST /v1/threads/{thread}/compactions", "DELETE /v1/threads/{thread}/compactions/latest",
		"GET /v1/threads/{thread}/decisions", "GET /v1/threads/{thread}/messages", "GET /v1/threads/{thread}/outputs/{handle}", "POST /v1/threads/{thread}/runs",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the routes are %q", got)
	}
}

// faults sends a route all that it refuses.
func (w *world) faults(r route) {
	w.t.Helper()
	tokens := map[string]string{serve.ScopeRun: runToken, serve.ScopeRead: readToken, serve.ScopeAdmin: adminToken}
	path, body, auth := r.at(values), valid(r), "Bearer "+tokens[r.scope()]
	send := func(status int, method, path, body string) problem {
		w.t.Helper()
		return w.refused(status, method, path, body, "Authorization", auth, "Content-Type", r.takes())
	}
	w.refused(http.StatusUnauthorized, r.method, path, body, "Content-Type", r.takes())
	w.refused(http.StatusUnauthorized, r.method, path, body, "Authorization", auth+"x", "Content-Type", r.takes())
	for _, q := range r.Parameters {
		if q.In == "query" && q.Schema["type"] != "string" {
			if p := send(http.StatusUnprocessableEntity, r.method, path+"?"+q.Name+"=wrong", body); p.Field != "query."+q.Name {
				w.t.Errorf("%s: the problem is %+v", q.Name, p)
			}
		}
	}
	other := runToken
	if r.scope() == serve.ScopeRun {
		other = readToken
	}
	w.refused(http.StatusForbidden, r.method, path, body, "Authorization", "Bearer "+other, "Content-Type", r.takes())
	if p := send(http.StatusMethodNotAllowed, "PROPFIND", path, ""); !strings.Contains(p.Hint, r.method) {
		w.t.Errorf("the problem is %+v", p)
	}
	if allow := w.do("PROPFIND", path, "").Header.Get("Allow"); !strings.Contains(allow, r.method) {
		w.t.Errorf("the header Allow is %q", allow)
	}
	if p := send(http.StatusBadRequest, r.method, path+"?unknown=1", body); p.Field != "query.unknown" {
		w.t.Errorf("the problem is %+v", p)
	}
	switch r.takes() {
	case "":
		if p := send(http.StatusBadRequest, r.method, path, `{}`); p.Field != "body" {
			w.t.Errorf("the problem is %+v", p)
		}
		return
	case "application/json":
		var fields map[string]any
		must(w.t, json.Unmarshal([]byte(body), &fields))
		fields["unknown"] = 1
		more, _ := json.Marshal(fields)
		w.wrongTypes(r, path, body, auth)
		if r.path == "/v1/ag-ui" { // later versions of the protocol have more
			fields["threadId"] = ""
			more, _ = json.Marshal(fields)
			send(http.StatusUnprocessableEntity, r.method, path, string(more))
		} else if p := send(http.StatusBadRequest, r.method, path, string(more)); p.Field != "body.unknown" {
			w.t.Errorf("the problem is %+v", p)
		}
		send(http.StatusUnprocessableEntity, r.method, path, `[]`)
		send(http.StatusBadRequest, r.method, path, `{"`)
	}
	send(http.StatusRequestEntityTooLarge, r.method, path, strings.Repeat("x", 5000))
	w.refused(http.StatusUnsupportedMediaType, r.method, path, body, "Authorization", auth, "Content-Type", "text/plain")
}

// wrongTypes sends each field of a body with a value of another type.
func (w *world) wrongTypes(r route, path, body, auth string) {
	w.t.Helper()
	if len(r.fields) == 0 {
		w.t.Error("the body has no fields in the document")
	}
	for name := range r.fields {
		if name == "state" || name == "forwardedProps" {
			continue // AG-UI's: they may be anything, and are ignored
		}
		var fields map[string]any
		must(w.t, json.Unmarshal([]byte(body), &fields))
		fields[name] = true // no field is a boolean
		wrong, _ := json.Marshal(fields)
		p := w.refused(http.StatusUnprocessableEntity, r.method, path, string(wrong), "Authorization", auth, "Content-Type", r.takes())
		if !strings.HasPrefix(p.Field, "body."+name) {
			w.t.Errorf("%s: the problem is %+v", name, p)
		}
	}
}

// TestSchemas: the schemas of requests are valid, and take what the routes take.
func TestSchemas(t *testing.T) {
	t.Parallel()
	w := whole(t, nil)
	var doc map[string]any
	w.want(http.StatusOK, http.MethodGet, "/openapi.json", "").decode(t, &doc)
	for _, r := range routes(t, w) {
		if r.takes() != "application/json" {
			continue
		}
		root := map[string]any{"components": doc["components"], "allOf": []any{r.RequestBody.Content[r.takes()].Schema}}
		s, err := schema.Compile(root)
		must(t, err)
		var body any
		must(t, json.Unmarshal([]byte(valid(r)), &body))
		if err := s.Check(body); err != nil {
			t.Errorf("%s %s: %v", r.method, r.path, err)
		}
		if err := s.Check(map[string]any{"unknown": true}); err == nil {
			t.Errorf("%s %s: its schema takes anything", r.method, r.path)
		}
	}
}

// TestNoRoute: what is no route is a problem, too.
func TestNoRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, path := range []string{"/", "/v1", "/v1/plugins", "/v1/reload", "/v2/runs", "/docs", "/v1/threads/t/compactions", "/metrics"} {
		w.refused(http.StatusNotFound, http.MethodGet, path, "")
	}
	w.refused(http.StatusMethodNotAllowed, http.MethodPut, "/v1/runs", "")
}

// TestNoObject: what is not found is named.
func TestNoObject(t *testing.T) {
	t.Parallel()
	w := whole(t, nil)
	w.follow(w.submit("/v1/threads/t/runs", say("say hi")).Run, "").until("settled")
	for route, want := range map[string]string{
		"GET /v1/threads/lost": `there is no thread "lost"`, "POST /v1/threads/lost/pause": `there is no thread "lost"`, "DELETE /v1/threads/lost": `there is no thread "lost"`,
		"GET /v1/runs/lost": `there is no run "lost"`, "POST /v1/runs/lost/cancel": `there is no run "lost"`,
		"GET /v1/threads/t/outputs/lost": `this thread has no output "lost"`, "GET /v1/threads/t/decisions?run=lost": `there is no record of run "lost"`,
		"POST /v1/dead-letters/lost/replay": `there is no dead letter "lost"`, "DELETE /v1/dead-letters/lost": `there is no dead letter "lost"`,
		"GET /v1/plugins/lost/history": `there is no module "lost"`,
	} {
		method, path, _ := strings.Cut(route, " ")
		if p := w.refused(http.StatusNotFound, method, path, ""); p.Detail != want {
			t.Errorf("%s: %+v", route, p)
		}
	}
}
