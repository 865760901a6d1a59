package mailbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestEndedStreamsAreBounded: events that no store shares stay with the process for the latest 256 executions, and for 64 MiB.
func TestEndedStreamsAreBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ runs, bytes, kept int }{
		"count": {runs: 260, bytes: 1, kept: 256},
		"bytes": {runs: 20, bytes: 4 << 20, kept: 15}, // each has an end, too
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
					j.Emit("tick", []byte(strings.Repeat("x", tc.bytes)))
					return mailbox.Result{}, nil
				}}
				m := started(t, mailbox.Config{Runtime: s, Events: mailbox.Events{Count: 10, Bytes: 8 << 20}, Store: plain{memstore.New()}})
				var dispatches []string
				for i := range tc.runs {
					sub, err := m.Submit(t.Context(), request(fmt.Sprint("t", i), "x"))
					must(t, err)
					synctest.Wait()
					dispatches = append(dispatches, sub.Dispatch)
				}
				kept := 0
				for i, id := range dispatches {
					feed, err := m.Attach(t.Context(), id)
					must(t, err)
					e, err := feed.Next(t.Context(), 0)
					has := err == nil && e.Type == "tick"
					if want := i >= tc.runs-tc.kept; has != want {
						t.Errorf("run %d of %d: %v, want %v: %s %v", i, tc.runs, has, want, e.Type, err)
					}
					if has {
						kept++
					}
				}
				if kept != tc.kept {
					t.Errorf("%d are kept", kept)
				}
			})
		})
	}
}
