package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/serve"
)

// asker is a model that calls the tool ask once for each request, as call_1.
type asker struct{}

func (asker) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	m := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("A readme.")}}
	if r.Messages[len(r.Messages)-1].Role != abi.RoleTool {
		m = abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "call_1", Name: "ask"}}}
	}
	return &abi.Response{Message: m}, nil
}

// documented is a server whose requests and responses are compared with its document, by a validator that has no
// code in common with what writes the document.
type documented struct {
	*world

	doc     map[string]any
	schemas *jsonschema.Compiler
	// seen are all JSON values that were sent or received.
	seen map[string]bool
}

func newDocumented(t *testing.T) *documented {
	t.Helper()
	w := newWorld(t, options{
		runtime: func(c *mortise.Config) {
			c.Agents = map[string]mortise.Agent{"assistant": {Model: asker{}, Tools: tools{newMind()}}}
			c.Compaction = &compaction.Config{Summarizer: compaction.Ledger{}}
		},
		serve: func(c *serve.Config) { c.Agents = []serve.AgentInfo{{Name: "assistant"}} },
	})
	d := &documented{world: w, schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	d.schemas.AssertFormat()
	w.want(http.StatusOK, http.MethodGet, "/openapi.json", "").decode(t, &d.doc)
	must(t, d.schemas.AddResource("openapi.json", d.doc))
	return d
}

// fits checks a value by the schema at a place in the document.
func (d *documented) fits(v any, place ...string) error {
	for i := range place {
		place[i] = strings.ReplaceAll(strings.ReplaceAll(place[i], "~", "~0"), "/", "~1")
	}
	s, err := d.schemas.Compile("openapi.json#/" + strings.Join(place, "/"))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// send sends a request, wants a status, and checks both the request and the response.
func (d *documented) send(status int, r route, at map[string]string, query string, body any) *answer {
	d.t.Helper()
	text, method := []byte(nil), strings.ToLower(r.method)
	if body != nil {
		text, _ = json.Marshal(body)
		err := d.fits(body, "paths", r.path, method, "requestBody", "content", "application/json", "schema")
		if wrong := status >= http.StatusBadRequest; wrong != (err != nil) {
			d.t.Errorf("%s %s %s: %v", r.method, r.path, text, err)
		}
		d.note(body)
	}
	a := d.want(status, r.method, r.at(at)+query, string(text))
	var got any
	a.decode(d.t, &got)
	d.note(got)
	code := fmt.Sprint(status)
	if r.Responses[code] == nil {
		code = "default"
	}
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	if err := d.fits(got, "paths", r.path, method, "responses", code, "content", kind, "schema"); err != nil {
		d.t.Errorf("%s %s: %s: %v", r.method, r.path, a.body, err)
	}
	return a
}

// note keeps a JSON value and all that is in it.
func (d *documented) note(v any) {
	text, _ := json.Marshal(v)
	d.seen[string(text)] = true
	var again any
	_ = json.Unmarshal(text, &again)
	switch v := again.(type) {
	case map[string]any:
		for _, e := range v {
			d.note(e)
		}
	case []any:
		for _, e := range v {
			d.note(e)
		}
	}
}

// waiting begins a run in a thread, and returns it when it waits for a decision.
func (d *documented) waiting(thread string) string {
	d.t.Helper()
	run := d.submit("/v1/threads/"+thread+"/runs", say("hello")).Run
	d.follow(run, "").until("run_waiting")
	return run
}

// TestDocument_valid: the document is valid by the schema of the OpenAPI Initiative, and each schema in it by that of JSON
// Schema.
func TestDocument_valid(t *testing.T) {
	t.Parallel()
	d := newDocumented(t)
	file, err := os.Open(filepath.Join("testdata", "oas31-schema.json"))
	must(t, err)
	defer file.Close()
	official, err := jsonschema.UnmarshalJSON(file)
	must(t, err)
	must(t, d.schemas.AddResource("oas31.json", official))
	s, err := d.schemas.Compile("oas31.json")
	must(t, err)
	var doc map[string]any
	text := whole(t, nil).want(http.StatusOK, http.MethodGet, "/openapi.json", "")
	text.decode(t, &doc)
	schemas := inner(doc, "components", "schemas")
	for _, ref := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllSubmatch(text.body, -1) {
		if schemas[string(ref[1])] == nil {
			t.Errorf("the document has no schema %s", ref[1])
		}
	}
	must(t, s.Validate(doc))
	must(t, d.schemas.AddResource("whole.json", doc))
	for name := range schemas {
		if _, err := d.schemas.Compile("whole.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	inner(doc, "paths", "/v1/runs", "post")["responses"] = 5
	if err := s.Validate(doc); err == nil {
		t.Error("a wrong document is valid, too")
	}
}

// TestDocument_examples: every example in the document is executed; requests and responses, also of errors, fit their schemas.
func TestDocument_examples(t *testing.T) {
	t.Parallel()
	d := newDocumented(t)
	list, executed := map[string]route{}, 0
	for _, r := range routes(t, d.world) {
		list[r.method+" "+r.path] = r
		for _, body := range d.examples(r) {
			thread := fmt.Sprintf("example-%d", executed)
			executed++
			at := map[string]string{"thread": thread}
			if strings.HasSuffix(r.path, "/decisions") || strings.HasSuffix(r.path, "/compactions") {
				at["run"] = d.waiting(thread)
			}
			status := http.StatusOK
			if r.Responses["202"] != nil {
				status = http.StatusAccepted
			}
			d.send(status, r, at, "", body)
			if strings.HasSuffix(r.path, "/decisions") {
				d.follow(at["run"], "").until("settled")
			}
		}
	}
	if executed < 8 {
		t.Errorf("%d bodies were executed", executed)
	}
	at := map[string]string{"thread": "reads", "run": d.waiting("reads")}
	d.send(http.StatusOK, list["GET /v1/runs/{run}"], at, "", nil)
	d.send(http.StatusOK, list["GET /v1/threads/{thread}"], at, "", nil)
	d.send(http.StatusOK, list["GET /v1/threads/{thread}/messages"], at, "?limit=1", nil)
	d.send(http.StatusOK, list["GET /v1/threads/{thread}/messages"], at, "?view=model", nil)
	d.send(http.StatusNotFound, list["GET /v1/runs/{run}"], map[string]string{"run": "none"}, "", nil)
	d.send(http.StatusUnprocessableEntity, list["POST /v1/runs"], nil, "", map[string]any{"input": "hello", "agent": 5})
	d.events(at["run"])
	for at, example := range examplesIn(d.doc, "#") {
		if text, _ := json.Marshal(example); !d.seen[string(text)] {
			t.Errorf("the example %s at %s is not executed", text, at)
		}
	}
}

// examples are the bodies of a route in the document.
func (d *documented) examples(r route) map[string]any {
	named := inner(d.doc, "paths", r.path, strings.ToLower(r.method), "requestBody", "content", "application/json", "examples")
	out := map[string]any{}
	for name := range named {
		out[name] = inner(named, name)["value"]
	}
	return out
}

// inner is an object in an object, or nil.
func inner(v map[string]any, names ...string) map[string]any {
	for _, name := range names {
		v, _ = v[name].(map[string]any)
	}
	return v
}

// events reads events as the examples of the document have them, after each of them.
func (d *documented) events(run string) {
	d.t.Helper()
	list := d.follow(run, "").until("run_waiting")
	first := list[0]
	d.note(fmt.Sprintf("id: %s\nevent: %s\ndata: {\"type\":%q,\"id\":%q,\"seq\":%v}\n\n",
		first.id, first.name, first.field(d.t, "type"), first.field(d.t, "id"), first.field(d.t, "seq")))
	for i, e := range list[:len(list)-1] {
		d.note(e.id)
		s := d.stream(http.MethodGet, "/v1/runs/"+run+"/events?after="+e.id, "")
		if next, _ := s.next(); next != list[i+1] {
			d.t.Errorf("after %s comes %+v, want %+v", e.id, next, list[i+1])
		}
		s.close()
	}
}

// examplesIn lists all examples of a document by their place.
func examplesIn(v any, at string) map[string]any {
	out := map[string]any{}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			maps.Copy(out, examplesIn(e, fmt.Sprintf("%s/%d", at, i)))
		}
	case map[string]any:
		for name, field := range v {
			place := at + "/" + name
			list, several := field.([]any)
			named, objects := field.(map[string]any)
			switch {
			case name == "example":
				out[place] = field
			case name == "examples" && several:
				for i, e := range list {
					out[fmt.Sprintf("%s/%d", place, i)] = e
				}
			case name == "examples" && objects:
				for key := range named {
					out[place+"/"+key] = inner(named, key)["value"]
				}
			default:
				maps.Copy(out, examplesIn(field, place))
			}
		}
	}
	return out
}
