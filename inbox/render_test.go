package inbox_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// prepend takes, words and acknowledges, as a run that starts does.
func (d *desk) prepend(t *testing.T, prompt string) string {
	t.Helper()
	got := take(t, d.out)
	text, used := inbox.Prepend(notices(got), prompt, 0)
	if err := ack(t.Context(), got, used); err != nil {
		t.Fatal(err)
	}
	return text
}

// followUp does so for a run that has nothing else to do.
func (d *desk) followUp(t *testing.T) string {
	t.Helper()
	got := take(t, d.out)
	text, used := inbox.FollowUp(notices(got), 0)
	if err := ack(t.Context(), got, used); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPrepend(t *testing.T) {
	t.Parallel()
	t.Run("prepend_passthrough_when_store_is_none", func(t *testing.T) {
		t.Parallel()
		const prompt = " <as> it\r\nis "
		if got, used := inbox.Prepend(nil, prompt, 0); got != prompt || used != 0 {
			t.Fatalf("prompt is %q, %d used", got, used)
		}
	})
	each(t, background.Config{}, map[string]func(*testing.T, *desk){
		"prepend_passthrough_when_nothing_pending": func(t *testing.T, d *desk) {
			t.Helper()
			d.start(t, hanging)
			if got := d.prepend(t, "go"); got != "go" {
				t.Fatalf("prompt is %q", got)
			}
		},
		"prepend_formats_system_reminder": func(t *testing.T, d *desk) {
			t.Helper()
			d.end(t, "the text")
			want := "<system-reminder>\nThe following background tasks finished since your last turn:\n\n" +
				"Task t0 (completed):\nthe text\n</system-reminder>\n\ngo"
			if got := d.prepend(t, "go"); got != want {
				t.Fatalf("prompt is %q", got)
			}
		},
		"prepend_includes_failed_tasks": func(t *testing.T, d *desk) {
			t.Helper()
			d.end(t, errors.New("no route"))
			if got := d.prepend(t, "go"); !strings.Contains(got, "Task t0 (failed):\nno route\n") {
				t.Fatalf("prompt is %q", got)
			}
		},
		"regression_prepend_drains_queue_once": func(t *testing.T, d *desk) {
			t.Helper()
			d.end(t, "x", "y")
			// A run that fails gives back what it took, and the next run has the same.
			failed := take(t, d.out)
			first, _ := inbox.Prepend(notices(failed), "go", 0)
			failed.Release()
			again := take(t, d.out)
			second, used := inbox.Prepend(notices(again), "go", 0)
			if first == "go" || second != first || used != 2 {
				t.Fatalf("prompts are %q and %q, %d used", first, second, used)
			}
			if err := ack(t.Context(), again, used); err != nil {
				t.Fatal(err)
			}
			rest := take(t, d.out)
			defer rest.Release()
			if third, _ := inbox.Prepend(notices(rest), "go", 0); third != "go" || d.out.Waiting("a") != 0 {
				t.Fatalf("the prompt after that is %q, %d notices wait", third, d.out.Waiting("a"))
			}
		},
		"prepend_includes_all_pending_tasks_in_order": func(t *testing.T, d *desk) {
			t.Helper()
			d.end(t, "A", errors.New("B"), "C")
			want := "Task t0 (completed):\nA\n\nTask t1 (failed):\nB\n\nTask t2 (completed):\nC\n</system-reminder>\n\ngo"
			if got := d.prepend(t, "go"); !strings.HasSuffix(got, want) {
				t.Fatalf("prompt is %q", got)
			}
		},
	})
}

func TestFollowUp(t *testing.T) {
	t.Parallel()
	each(t, background.Config{}, map[string]func(*testing.T, *desk){
		"subagent_completion_injects_followup_message": func(t *testing.T, d *desk) {
			t.Helper()
			d.end(t, "the text")
			want := "<system-reminder>\nThe following background tasks finished since your last turn:\n\n[task t0] completed: the text\n</system-reminder>"
			m := inbox.Message(d.followUp(t))
			if m.Text() != want || m.Role != abi.RoleUser || m.Visibility != abi.VisibilityInternal {
				t.Fatalf("message is %+v", m)
			}
			if again := d.followUp(t); again != "" {
				t.Fatalf("then comes %q", again)
			}
		},
		"subagent_failure_injects_followup_with_error_marker": func(t *testing.T, d *desk) {
			t.Helper()
			d.end(t, errors.New("no route"))
			if got := d.followUp(t); !strings.Contains(got, "\n[task t0] failed: no route\n") || strings.Contains(got, "completed:") {
				t.Fatalf("message is %q", got)
			}
		},
		"followup_batches_multiple_completions_in_one_reminder": func(t *testing.T, d *desk) {
			t.Helper()
			d.end(t, "A", errors.New("B"), "C")
			got := d.followUp(t)
			if !strings.Contains(got, "\n\n[task t0] completed: A\n\n[task t1] failed: B\n\n[task t2] completed: C\n</system-reminder>") || strings.Count(got, "<system-reminder>") != 1 {
				t.Fatalf("message is %q", got)
			}
		},
		"followup_returns_empty_when_no_completions": func(t *testing.T, d *desk) {
			t.Helper()
			d.start(t, hanging)
			if got := d.followUp(t); got != "" {
				t.Fatalf("message is %q", got)
			}
		},
	})
	t.Run("followup_drains_queue_once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, drainsOnce)
	})
}

// drainsOnce has an agent take, render and acknowledge notifications, in two runs.
func drainsOnce(t *testing.T) {
	f := newOffice(t, officeParts{model: &model{}, agent: agent.Config{Notifications: agent.Notifications{Words: followUp}}, out: inbox.Config{Debounce: time.Hour}})
	f.start(t, "x", nil)
	f.start(t, "y", nil)
	synctest.Wait()
	for i := range 2 {
		if _, err := f.agent.Run(t.Context(), asked("go")); err != nil {
			t.Fatal(err)
		}
		text := shown(f.model.asked[i])
		if strings.Count(text, "] completed: x\n") != 1 || strings.Count(text, "] completed: y\n") != 1 || strings.Count(f.log(), "<system-reminder>") != 1 {
			t.Errorf("request %d shows %s", i, text)
		}
		if n := f.out.Waiting("a"); n != 0 {
			t.Errorf("%d notices wait after run %d", n, i)
		}
	}
	f.close(t)
}
