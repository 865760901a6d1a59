package serve_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/mailbox"
)

// TestTraceParent: a run belongs to the trace of its request. A header that is not valid is no error, and no trace.
func TestTraceParent(t *testing.T) {
	t.Parallel()
	traces := make(chan map[string]string, 1)
	w := newWorld(t, options{runtime: func(c *mortise.Config) {
		c.Observers = []mortise.Observer{{Run: func(ctx context.Context, _ string, j *mailbox.Job) (context.Context, func(mailbox.Result, error)) {
			traces <- j.Request.Trace
			return ctx, nil
		}}}
	}})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, c := range []struct {
		path, parent, state string
		want                map[string]string
	}{
		{"/v1/runs", parent, "vendor=1", map[string]string{"traceparent": parent, "tracestate": "vendor=1"}},
		{"/v1/threads/t/runs", parent, "", map[string]string{"traceparent": parent}},
		{"/v1/runs", parent, strings.Repeat("a", 513), map[string]string{"traceparent": parent}},
		{"/v1/runs", parent + "-more", "vendor=1", nil},
		{"/v1/runs", "", "vendor=1", nil},
	} {
		header := []string{"Tracestate", c.state}
		if c.parent != "" {
			header = append(header, "Traceparent", c.parent)
		}
		w.want(http.StatusAccepted, http.MethodPost, c.path, say("once"), header...)
		if got := <-traces; !maps.Equal(got, c.want) {
			t.Errorf("%s with %q: the trace is %v, want %v", c.path, c.parent, got, c.want)
		}
	}
}
