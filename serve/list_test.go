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
