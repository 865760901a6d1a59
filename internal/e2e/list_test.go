package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// checkLists: the lists have each run and each thread once, whichever process is asked, and nothing of a thread that was deleted.
func (w *world) checkLists(t *testing.T, runs []*run, n size) {
	t.Helper()
	c := &client{w: w, http: &http.Client{Transport: &http.Transport{}}}
	defer c.http.CloseIdleConnections()
	list := func(path string) map[string]int {
		t.Helper()
		seen := map[string]int{}
		for next := ""; ; {
			status, data, err := c.call(t.Context(), false, http.MethodGet, path+"limit=50&after="+url.QueryEscape(next), nil)
			var page struct {
				Runs, Threads []struct{ ID string }
				Next          string
			}
			if err != nil || status != http.StatusOK || json.Unmarshal(data, &page) != nil {
				t.Fatalf("%s: %d %s %v", path, status, data, err)
			}
			for _, x := range append(page.Runs, page.Threads...) {
				seen[x.ID]++
			}
			if next = page.Next; next == "" {
				return seen
			}
		}
	}
	all, threads := list("/v1/runs?status=done&"), list("/v1/threads?")
	for _, r := range runs {
		if all[r.ID] != 1 {
			t.Errorf("run %s of %s is %d times in the list", r.ID, r.task, all[r.ID])
		}
	}
	if len(threads) != n.threads || threads["t0"] != 1 {
		t.Errorf("the threads are %v, want %d", threads, n.threads)
	}
	of := list("/v1/runs?thread=t0&")
	status, data, err := c.call(t.Context(), false, http.MethodDelete, "/v1/threads/t0", nil)
	for until := time.Now().Add(time.Minute); status == http.StatusConflict && time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		status, data, err = c.call(t.Context(), false, http.MethodDelete, "/v1/threads/t0", nil) // a notification woke it
	}
	if err != nil || status != http.StatusNoContent || len(of) == 0 {
		t.Fatalf("deletion of a thread with %d runs: %d %s %v", len(of), status, data, err)
	}
	for _, path := range []string{"", "/messages", "/compactions"} {
		if status, data, err := c.call(t.Context(), false, http.MethodGet, "/v1/threads/t0"+path, nil); err != nil || status != http.StatusNotFound {
			t.Errorf("t0%s after its deletion: %d %s %v", path, status, data, err)
		}
	}
	if left := len(list("/v1/runs?thread=t0&")); left != 0 || len(list("/v1/threads?")) != n.threads-1 {
		t.Errorf("%d runs of a deleted thread are left", left)
	}
}
