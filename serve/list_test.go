package serve_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestLists: runs by status, agent, tenant, thread and time, and threads by tenant, in pages.
func TestLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	var runs []string
	for i, thread := range []string{"a", "b", "a", "c"} {
		body := say("say hi")
		if thread != "c" {
			body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"tenant":"tenant-%s"}`, thread)
		}
		id := w.submit("/v1/threads/"+thread+"/runs", body)
		w.follow(id.Run, "").until("settled")
		runs = append([]string{id.Run}, runs...)
		if i == 0 {
			w.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/runs?after=x", "")
			w.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/runs?status=lost", "")
			for _, path := range []string{"/v1/runs?wait=lost", "/v1/threads?wait=lost"} {
				if p := w.refused(http.StatusUnprocessableEntity, http.MethodGet, path, ""); p.Field != "query.wait" || !strings.Contains(p.Detail, "tool_permission, user_input") {
					t.Errorf("%s: %+v", path, p)
				}
			}
			w.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/runs?since=yesterday", "")
		}
	}
	type page struct {
		Runs []struct {
			ID      string
			Thread  string `json:"thread_id"`
			Status  string
			Created string `json:"created_at"`
		}
		Threads []struct{ ID, Tenant string }
		Next    string
	}
	list := func(path string) (ids []string) {
		t.Helper()
		for next := ""; ; {
			var p page
			w.want(http.StatusOK, http.MethodGet, path+"&limit=1&after="+url.QueryEscape(next), "").decode(t, &p)
			for _, r := range p.Runs {
				ids = append(ids, r.ID)
			}
			for _, thread := range p.Threads {
				ids = append(ids, thread.ID+"="+thread.Tenant)
			}
			if next = p.Next; next == "" {
				return ids
			}
		}
	}
	for path, want := range map[string][]string{
		"/v1/runs?":                           runs,
		"/v1/runs?status=done":                runs,
		"/v1/runs?status=waiting":             nil,
		"/v1/runs?thread=a":                   {runs[1], runs[3]},
		"/v1/runs?tenant=tenant-b":            {runs[2]},
		"/v1/runs?tenant=tenant-b&thread=a":   nil,
		"/v1/runs?agent=none":                 nil,
		"/v1/runs?since=2000-01-01T00:00:00Z": runs,
		"/v1/runs?since=2100-01-01T00:00:00Z": nil,
		"/v1/threads?":                        {"a=tenant-a", "b=tenant-b", "c="},
		"/v1/threads?tenant=tenant-b":         {"b=tenant-b"},
		"/v1/threads?wait=user_input":         nil,
		"/v1/threads?queued=true":             nil,
	} {
		if got := list(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestRuns_agent: a run that named no agent shows the one that it has, in lists too.
func TestRuns_agent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	id := w.submit("/v1/threads/t/runs", say("say hi"))
	for _, path := range []string{"/v1/runs", "/v1/runs?agent=a", "/v1/runs/" + id.Run} {
		if a := w.want(http.StatusOK, http.MethodGet, path, ""); !strings.Contains(string(a.body), `"agent":"a"`) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if a := w.want(http.StatusOK, http.MethodGet, "/v1/runs?agent=other", ""); strings.Contains(string(a.body), id.Run) {
		t.Errorf("runs of another agent: %s", a.body)
	}
}

// TestThread_describedAndDeleted: a thread has a title, metadata and times; it is deleted with the threads below it of its tenant, and not
// while a run is under way.
func TestThread_describedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	under := func(thread, parent, tenant, text string) ids {
		t.Helper()
		return w.submit("/v1/threads/"+thread+"/runs", fmt.Sprintf(`{"input":%q,"tenant":%q,"parent_thread_id":%q}`, text, tenant, parent))
	}
	for _, thread := range [][3]string{{"top", "", "acme"}, {"middle", "top", "acme"}, {"low", "middle", "acme"}, {"stranger", "top", "other"}} {
		id := under(thread[0], thread[1], thread[2], "say hi")
		w.follow(id.Run, "").until("settled")
	}
	var v struct {
		ID, Title string
		Parent    string `json:"parent_thread_id"`
		Metadata  map[string]any
		Created   string `json:"created_at"`
		Messages  int
	}
	w.want(http.StatusOK, http.MethodPatch, "/v1/threads/middle", `{"title":"A talk","metadata":{"color":"red","n":[1]}}`).decode(t, &v)
	w.want(http.StatusOK, http.MethodPatch, "/v1/threads/middle", `{"title":"Another"}`)
	w.want(http.StatusOK, http.MethodGet, "/v1/threads/middle", "").decode(t, &v)
	if v.Title != "Another" || v.Metadata["color"] != "red" || v.Parent != "top" || v.Created == "" || v.Messages == 0 {
		t.Errorf("the thread is %+v", v)
	}
	for patch, want := range map[string]string{`{"metadata":null}`: `"title":"Another","metadata":{},`, `{"title":null,"metadata":{"a":1}}`: `"metadata":{"a":1},`} {
		w.want(http.StatusOK, http.MethodPatch, "/v1/threads/middle", `{"title":"Another","metadata":{"a":1}}`)
		a := w.want(http.StatusOK, http.MethodPatch, "/v1/threads/middle", patch)
		if !strings.Contains(string(a.body), want) || strings.Contains(patch, "title") == strings.Contains(string(a.body), `"title"`) {
			t.Errorf("after %s the thread is %s", patch, a.body)
		}
	}
	w.refused(http.StatusNotFound, http.MethodPatch, "/v1/threads/none", `{"title":"x"}`)
	w.refused(http.StatusUnprocessableEntity, http.MethodPatch, "/v1/threads/middle", `{"metadata":[1]}`)
	w.refused(http.StatusUnprocessableEntity, http.MethodPatch, "/v1/threads/middle", `{"title":"`+strings.Repeat("x", 1001)+`"}`)
	w.refused(http.StatusRequestEntityTooLarge, http.MethodPatch, "/v1/threads/middle", `{"metadata":{"long":"`+strings.Repeat("x", 9000)+`"}}`)
	w.refused(http.StatusNotFound, http.MethodDelete, "/v1/threads/none", "")

	busy := under("low", "", "acme", "hold")
	<-w.mind.begun
	w.refused(http.StatusConflict, http.MethodDelete, "/v1/threads/top", "")
	close(w.mind.release)
	w.follow(busy.Run, "").until("settled")
	w.want(http.StatusNoContent, http.MethodDelete, "/v1/threads/top", "")
	for _, thread := range []string{"top", "middle", "low"} {
		w.refused(http.StatusNotFound, http.MethodGet, "/v1/threads/"+thread, "")
	}
	w.refused(http.StatusNotFound, http.MethodGet, "/v1/runs/"+busy.Run, "")
	w.want(http.StatusOK, http.MethodGet, "/v1/threads/stranger", "")
}
