package serve_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestInput_content: a block that no model can be sent is refused when it comes, with the name of the element and of the
// field: in the log it would fail each later run of the thread.
func TestInput_content(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{idle: true})
	message := func(role, blocks string) string { return `{"role":"` + role + `","content":[` + blocks + `]}` }
	fine := `{"type":"text","text":"say hi"}`
	for input, want := range map[string]string{
		message("user", fine+`,{"type":"video","url":"https://a.example/v"}`):      "input[0].content[1].type",
		message("user", `{"type":"audio","data":"AAAA","media_type":"audio/wav"}`): "input[0].content[0].type",
		message("user", `{"type":"thinking","text":"hm"}`):                         "input[0].content[0].type",
		message("user", `{"type":"image"}`):                                        "input[0].content[0].data",
		message("user", `{"type":"image","data":"AAAA"}`):                          "input[0].content[0].media_type",
		message("user", `{"type":"image","data":"%%","media_type":"image/png"}`):   "input[0].content[0].data",
		message("user", `{"type":"document","title":"a"}`):                         "input[0].content[0].data",
		message("user", fine) + "," + message("user", `{"type":"text"}`):           "input[1].content[0].text",
		message("user", `{"type":"text","text":" \n"}`):                            "input[0].content[0].text",
		message("system", fine+`,{"type":"image","url":"https://a.example/i"}`):    "input[0].content[1].type",
		message("king", fine):                        "input[0].role",
		message("user", fine) + ",null":              "input[1]",
		`{"role":"user","content":"say hi"}`:         "input[0].content",
		`{"role":"user","content":[]}`:               "input[0].content",
		message("user", `{"type":"text","text":1}`):  "input[0].content[0].text",
		message("user", fine) + `,{"content":["a"]}`: "input[1].content[0]",
	} {
		p := w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/threads/t/runs", `{"input":[`+input+`]}`)
		if p.Field != "body."+want {
			t.Errorf("%s: %+v, want %s", input, p, want)
		}
	}
	if p := w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/runs", say(" ")); p.Field != "body.input" || !strings.Contains(p.Detail, "not empty") {
		t.Errorf("a blank text: %+v", p)
	}
	if p := w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/ag-ui",
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":[{"type":"video","source":{"type":"url","value":"https://a.example/v"}}]}]}`); p.Field != "body.messages[0].content[0].type" {
		t.Errorf("of AG-UI: %+v", p)
	}
	for i, block := range []string{
		fine, `{"type":"image","url":"https://a.example/i"}`, `{"type":"image","data":"AAAA","media_type":"image/png"}`, `{"type":"image","data":"data:image/png;base64,AAAA"}`,
		`{"type":"document","data":"AAAA"}`, `{"type":"document","url":"https://a.example/d"}`,
	} {
		w.submit(fmt.Sprintf("/v1/threads/fine-%d/runs", i), `{"input":[`+message("user", block)+`]}`)
	}
}

// TestDecision_noResult: a decision that is to be the result of a call has one.
func TestDecision_noResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	run := w.submit("/v1/threads/t/runs", say("ask")).Run
	w.follow(run, "").until("run_waiting")
	for _, more := range []string{"", `,"result":null`} {
		body := `"decisions":[{"target":"x","action":"deny"},{"target":"ticket","action":"result"` + more + `}]`
		for path, body := range map[string]string{"/v1/runs/" + run + "/decisions": "{" + body + "}", "/v1/threads/t/runs": say("say hi", body)} {
			if p := w.refused(http.StatusUnprocessableEntity, http.MethodPost, path, body); p.Field != "body.decisions[1].result" {
				t.Errorf("%s: %+v", path, p)
			}
		}
	}
	w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/decisions", `{"decisions":[{"target":"ticket","action":"result","result":false}]}`)
	w.follow(run, "").until("settled")
}

// TestNames: a name of a field has the case of the document, and comes once. What clients keep may have any names, once.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{idle: true})
	text := `{"type":"text","text":"say hi"}`
	for body, want := range map[string]string{
		`{"Input":"say hi"}`:                                   "Input",
		`{"input":"say hi","input":"say no"}`:                  "input",
		`{"input":"say hi","Input":"say no"}`:                  "Input",
		`{"input":"say hi","\u0069nput":"say no"}`:             "input",
		`{"input":"say hi","unknown":1}`:                       "unknown",
		`{"input":[{"Role":"user","content":[` + text + `]}]}`: "input[0].Role",
		`{"input":[{"role":"user","content":[` + text + `,{"type":"text","text":"a","TEXT":"b"}]}]}`:         "input[0].content[1].TEXT",
		`{"input":[{"role":"user","content":[{"type":"text","text":"a","x":1}]}]}`:                           "input[0].content[0].x",
		say("say hi", `"decisions":[{"target":"t","action":"result","result":{"A":[{"b":1,"c":2,"b":1}]}}]`): "decisions[0].result",
	} {
		if p := w.refused(http.StatusBadRequest, http.MethodPost, "/v1/threads/t/runs", body); p.Field != "body."+want {
			t.Errorf("%s: %+v, want %s", body, p, want)
		}
	}
	w.submit("/v1/threads/t/runs", say("say hi"))
	w.want(http.StatusOK, http.MethodPatch, "/v1/threads/t", `{"metadata":{"A":1,"a":{"Title":2,"title":3}}}`)
	w.refused(http.StatusBadRequest, http.MethodPatch, "/v1/threads/t", `{"Title":"x"}`)
	w.refused(http.StatusBadRequest, http.MethodPatch, "/v1/threads/t", `{"metadata":{"a":{"b":1,"b":2}}}`)
	w.refused(http.StatusBadRequest, http.MethodPost, "/v1/ag-ui", `{"threadId":"u","runid":"r","messages":[]}`)
}

// TestBatch_malformed: a malformed request of a batch is refused by itself, and the answer has its thread.
func TestBatch_malformed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{idle: true})
	items := []string{
		`{"thread_id":"fine","run":{"input":"say hi"}}`,
		`{"thread_id":"empty","run":{"input":""}}`,
		`{"thread_id":"video","run":{"input":[{"role":"user","content":[{"type":"video"}]}]}}`,
		`{"thread_id":"none"}`,
		`{"thread_id":"more","run":{"input":"say hi","x":1}}`,
		`{"thread_id":"case","run":{"Input":"say hi"}}`,
		`{"thread_id":"twice","run":{"input":"say hi","input":"say hi"}}`,
		`{"thread_id":"type","run":{"input":"say hi","priority":"high"}}`,
		`{"thread_id":"agent","run":{"input":"say hi","agent":"nobody"}}`,
		`null`,
		`{"thread_id":"fine","run":{"input":"say more"}}`,
	}
	want := []string{
		"", "422 .run.input", "422 .run.input[0].content[0].type", "422 ", "400 .run.x", "400 .run.Input", "400 .run.input", "422 .run.priority", "422 .run.agent", "422 ", "",
	}
	var out struct {
		Runs []struct {
			ids

			Error *problem
		}
	}
	w.want(http.StatusAccepted, http.MethodPost, "/v1/runs/batch", `{"runs":[`+strings.Join(items, ",")+`]}`).decode(t, &out)
	for i, r := range out.Runs {
		got := ""
		if r.Error != nil {
			got = fmt.Sprint(r.Error.Status, " ", strings.TrimPrefix(r.Error.Field, fmt.Sprintf("body.runs[%d]", i)))
		}
		if got != want[i] || (r.Run != "") != (got == "") || !strings.Contains(items[i], r.Thread) || r.Thread == "" && items[i] != "null" {
			t.Errorf("%s: %+v %+v, want %q", items[i], r.ids, r.Error, want[i])
		}
	}
	w.refused(http.StatusBadRequest, http.MethodPost, "/v1/runs/batch", `{"Runs":[`+items[0]+`]}`)
}
