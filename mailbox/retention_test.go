package mailbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// threads lists all threads.
func threads(t *testing.T, m *mailbox.Mailbox) (out []string) {
	t.Helper()
	list, err := m.Threads(t.Context(), mailbox.ThreadQuery{Limit: 100})
	must(t, err)
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

func TestRetention(t *testing.T) {
	t.Parallel()
	waits := func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		if string(j.Request.Messages[0].Data) == "ask" {
			return mailbox.Result{Status: mailbox.RunWaiting, Wait: "tool_permission"}, nil
		}
		return mailbox.Result{Termination: "natural"}, nil
	}
	cases(t, map[string]func(*testing.T){
		"threads by age, but none that waits": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{do: waits}, Poll: time.Hour, Retention: mailbox.Retention{Interval: time.Hour, Threads: 48 * time.Hour}})
			background(t, m, request("done", "first"))
			background(t, m, request("asks", "ask"))
			later := request("later", "first")
			later.At = time.Now().Add(30 * 24 * time.Hour)
			background(t, m, later)
			paused := background(t, m, request("paused", "first"))
			sleep(time.Second)
			_, err := m.PauseThread(t.Context(), paused.Thread)
			must(t, err)
			sleep(47 * time.Hour)
			equal(t, "threads", fmt.Sprint(threads(t, m)), "[asks done later paused]")
			sleep(2 * time.Hour)
			equal(t, "threads", fmt.Sprint(threads(t, m)), "[asks later paused]")
			if h := record(t, m, "done"); h.Seq != 0 || h.Fence != 0 {
				t.Errorf("of the thread is left: %+v", h)
			}
		},
		"a thread stays as long as those below it": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{do: waits}, Poll: time.Hour, Retention: mailbox.Retention{Interval: time.Hour, Threads: 48 * time.Hour}})
			background(t, m, request("above", "first"))
			below := request("below", "first")
			below.ParentThreadID = "above"
			sleep(24 * time.Hour)
			background(t, m, below)
			sleep(26 * time.Hour)
			equal(t, "threads", fmt.Sprint(threads(t, m)), "[above below]")
			sleep(24 * time.Hour)
			equal(t, "threads", fmt.Sprint(threads(t, m)), "[]")
		},
		"threads by number, the latest": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{do: waits}, Poll: time.Hour, Retention: mailbox.Retention{Interval: time.Hour, MaxThreads: 2}})
			for i := range 5 {
				background(t, m, request(fmt.Sprint("t", i), "first"))
				sleep(time.Second)
			}
			background(t, m, request("asks", "ask"))
			sleep(2 * time.Hour)
			equal(t, "threads", fmt.Sprint(threads(t, m)), "[asks t3 t4]")
		},
		"runs by age and number, but the last one": func(t *testing.T) {
			for name, r := range map[string]mailbox.Retention{"age": {Runs: 24 * time.Hour}, "number": {MaxRuns: 2}} {
				m := started(t, mailbox.Config{Runtime: &script{do: waits}, Poll: time.Hour, Retention: r})
				for range 5 {
					background(t, m, request("t", "first"))
					sleep(time.Second)
				}
				sleep(25 * time.Hour)
				list, err := m.Runs(t.Context(), mailbox.RunQuery{Thread: "t", Limit: 10})
				must(t, err)
				if want := map[string]int{"age": 1, "number": 2}[name]; len(list) != want {
					t.Errorf("by %s: %d runs stay, want %d", name, len(list), want)
				}
				equal(t, "the last run", list[0].ID, record(t, m, "t").Latest.ID)
				sub := background(t, m, request("t", "first"))
				sleep(time.Second)
				wantStatus(t, m, sub.Dispatch, mailbox.Acked)
			}
		},
		"nothing without bounds": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{do: waits}, Poll: time.Hour})
			background(t, m, request("t", "first"))
			sleep(40 * 24 * time.Hour)
			equal(t, "threads", fmt.Sprint(threads(t, m)), "[t]")
		},
	})
}
