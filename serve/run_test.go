package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestStream: a submission that accepts events gets those of its run, up to the one that settles it.
func TestStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	s := w.stream(http.MethodPost, "/v1/runs", say("say hello world"))
	list := s.rest()
	if got, want := told(list), "run_started step_started text_delta text_delta usage step_ended run_ended settled"; got != want {
		t.Errorf("events are %s, want %s", got, want)
	}
	run := strings.TrimPrefix(s.resp.Header.Get("Location"), "/v1/runs/")
	for i, e := range list {
		if e.field(t, "run_id") != run || e.field(t, "type") != e.name || e.field(t, "id") != e.id || e.field(t, "thread_id") == nil || e.field(t, "event_type") != nil {
			t.Errorf("event %d is %+v", i, e)
		}
		if want := fmt.Sprintf("1-%d", i+1); i < len(list)-1 && (e.id != want || e.field(t, "seq") != float64(i+1)) {
			t.Errorf("event %d has the id %s, want %s: %s", i, e.id, want, e.data)
		}
	}
	var view struct {
		Status, Output, Termination string
		Steps                       int
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/runs/"+run, "").decode(t, &view)
	if view.Status != "done" || view.Output != "helloworld" || view.Termination != "natural" || view.Steps != 1 {
		t.Errorf("the run is %+v", view)
	}
	w.want(http.StatusNoContent, http.MethodGet, "/v1/runs/"+run+"/events", "", "Last-Event-ID", list[len(list)-1].id)
}

// TestReattach: after any event of a run that waits and continues, the rest is the same, in the
// process that executed it and in another one.
func TestReattach(t *testing.T) {
	t.Parallel()
	file := sqlite(t)
	shared := memstore.New()
	for name, open := range map[string]func() store.Store{"memory": func() store.Store { return shared }, "sqlite": file} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := newWorld(t, options{store: open()})
			two := newWorld(t, options{store: open(), mind: one.mind, idle: true})
			s := one.stream(http.MethodPost, "/v1/threads/t/runs", say("ask"))
			list := s.until("run_waiting")
			run := list[0].run(t)
			there := two.follow(run, "")
			there.until("run_waiting")
			two.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/decisions", `{"decisions":[{"target":"ticket","action":"allow","result":"yes"}]}`)
			list = append(list, s.rest()...)
			if last := list[len(list)-1]; last.name != "settled" || last.field(t, "output") != `decided "yes"` {
				t.Errorf("the last event is %+v of %s", last, told(list))
			}
			for i := -1; i < len(list)-1; i++ {
				after := ""
				if i >= 0 {
					after = list[i].id
				}
				for _, w := range []*world{one, two} {
					if got := w.follow(run, after).rest(); !slices.Equal(got, list[i+1:]) {
						t.Fatalf("after %q comes\n%s, want\n%s", after, told(got), told(list[i+1:]))
					}
				}
			}
			if got := there.rest(); got[len(got)-1] != list[len(list)-1] {
				t.Errorf("the stream of the other process ended with %+v", got[len(got)-1])
			}
		})
	}
}

// TestRestart: a run that waits for a decision outlives its process. A client continues where it was.
func TestRestart(t *testing.T) {
	t.Parallel()
	file := sqlite(t)
	one := newWorld(t, options{store: file()})
	s := one.stream(http.MethodPost, "/v1/threads/t/runs", say("ask"), "Idempotency-Key", "k")
	list := s.until("run_waiting")
	one.close()
	list = append(list, s.rest()...)
	two := newWorld(t, options{store: file()})
	if again := two.submit("/v1/threads/t/runs", say("ask"), "Idempotency-Key", "k"); !again.Repeated || again.Run != list[0].run(t) {
		t.Errorf("the same request is %+v", again)
	}
	rest := two.follow(list[0].run(t), list[len(list)-1].id)
	two.want(http.StatusOK, http.MethodPost, "/v1/runs/"+list[0].run(t)+"/decisions", `{"decisions":[{"target":"ticket","action":"result","result":{"n":1}}]}`)
	list = append(list, rest.rest()...)
	if got := told(list); strings.Count(got, "run_started") != 2 || !strings.HasSuffix(got, "run_ended settled") {
		t.Errorf("the events are %s", got)
	}
	if all := two.follow(list[0].run(t), "").rest(); !slices.Equal(all, list) {
		t.Errorf("all events are\n%s, want\n%s", told(all), told(list))
	}
}

// TestLog: requests that change runs have one line each, without what they bring.
func TestLog(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := newWorld(t, options{serve: func(c *serve.Config) {
		withTokens(c)
		c.Logger = slog.New(slog.NewJSONHandler(&buf, nil))
	}})
	auth := []string{"Authorization", "Bearer " + runToken}
	run := w.submit("/v1/threads/t/runs", say("hold the secret"), auth...).Run
	<-w.mind.begun
	w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/cancel", "", auth...)
	w.want(http.StatusUnauthorized, http.MethodPost, "/v1/runs", say("hold the secret"))
	text := buf.String()
	if strings.Count(text, "\n") != 2 || strings.Count(text, run) != 2 || strings.Count(text, `"caller":"runner"`) != 2 || strings.Contains(text, "secret") || strings.Contains(text, runToken) {
		t.Errorf("the log is\n%s", text)
	}
}

// TestDecisions: a second client decides, and later decisions are refused with the reason.
func TestDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	s := w.stream(http.MethodPost, "/v1/threads/t/runs", say("ask"))
	run := s.until("run_waiting")[0].run(t)
	var view struct {
		Status, Wait string
		Tickets      []struct {
			ID   string
			Call struct{ Name string }
		}
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/runs/"+run, "").decode(t, &view)
	if view.Status != "waiting" || len(view.Tickets) != 1 || view.Tickets[0].ID != "ticket" || view.Tickets[0].Call.Name != "ask" {
		t.Errorf("the run is %+v", view)
	}
	path := "/v1/runs/" + run + "/decisions"
	w.refused(http.StatusConflict, http.MethodPost, path, `{"decisions":[{"target":"nothing","action":"allow"}]}`)
	w.refused(http.StatusUnprocessableEntity, http.MethodPost, path, `{"decisions":[{"target":"ticket","action":"maybe"}]}`)
	w.refused(http.StatusNotFound, http.MethodPost, "/v1/runs/none/decisions", `{"decisions":[{"target":"ticket","action":"allow"}]}`)
	w.want(http.StatusOK, http.MethodPost, path, `{"decisions":[{"target":"call_ask","action":"deny","reason":"too late today"}]}`)
	list := s.rest()
	if last := list[len(list)-1]; !strings.Contains(fmt.Sprint(last.field(t, "output")), "too late today") {
		t.Errorf("the run ended with %s", last.data)
	}
	if p := w.refused(http.StatusConflict, http.MethodPost, path, `{"decisions":[{"target":"ticket","action":"allow"}]}`); !strings.Contains(p.Detail, "ended") {
		t.Errorf("the problem is %+v", p)
	}
}

// TestLateDecision: a decision that a run under way does not come to wait for makes no run, and the stream of the run that it names says so.
func TestLateDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	run := w.submit("/v1/threads/t/runs", say("hold")).Run
	<-w.mind.begun
	w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/decisions", `{"decisions":[{"target":"nonsense","action":"allow"}]}`)
	s := w.follow(run, "")
	close(w.mind.release)
	refused := s.until("refused")
	id := refused[len(refused)-1].id
	if last := refused[len(refused)-1]; id != "2-1" || last.field(t, "run_id") != run || !strings.Contains(fmt.Sprint(last.field(t, "detail")), "refused") {
		t.Errorf("the event is %s %s", id, last.data)
	}
	for _, rest := range [][]event{s.rest(), w.follow(run, id).rest()} {
		if len(rest) != 1 || rest[0].name != "settled" {
			t.Errorf("after it came %s", told(rest))
		}
	}
	if list := names(w.follow(run, "").rest()); !slices.Equal(list[len(list)-2:], []string{"refused", "settled"}) {
		t.Errorf("a later reader gets %q", list)
	}
	var runs struct {
		Runs []struct{ Termination string }
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/runs?thread=t", "").decode(t, &runs)
	if len(runs.Runs) != 1 || runs.Runs[0].Termination != "natural" {
		t.Errorf("runs are %+v", runs)
	}
	if a := w.want(http.StatusOK, http.MethodGet, "/v1/threads/t", ""); !strings.Contains(string(a.body), `"latest_run":{"id":"`+run) {
		t.Errorf("the thread is %s", a.body)
	}
	w.refused(http.StatusConflict, http.MethodPost, "/v1/threads/t/runs", `{"decisions":[{"target":"nonsense","action":"allow"}]}`)
}

// slow is a store that takes its time to write that a run waits, and writes for others meanwhile.
type slow struct {
	*memstore.Store
	busy atomic.Bool
}

func (s *slow) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if slices.ContainsFunc(b.Put, func(c store.Cell) bool { return bytes.Contains(c.Value, []byte(mailbox.RunWaiting)) }) && s.busy.CompareAndSwap(false, true) {
		time.Sleep(30 * time.Millisecond)
		s.busy.Store(false)
	}
	return s.Store.Apply(ctx, b)
}

// TestMessageInsteadOfDecision: a message for a run that waits for a decision is the answer, in each mode, also for a client that answers
// faster than the store writes.
func TestMessageInsteadOfDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{store: &slow{Store: memstore.New()}})
	for i, mode := range []string{"background", "foreground", "live", "foreground", "foreground", "foreground", "foreground"} {
		path := fmt.Sprintf("/v1/threads/%s%d/runs", mode, i)
		s := w.stream(http.MethodPost, path, say("ask"))
		run := s.until("run_waiting")[0].run(t)
		if next := w.submit(path, say("say else", `"mode":"`+mode+`"`)); next.Run != run {
			t.Errorf("%s: the message went to %+v, want run %s", mode, next, run)
		}
		list := s.rest()
		if last := list[len(list)-1]; last.field(t, "output") != "else" || !slices.Contains(names(list), "tool_call_cancelled") {
			t.Errorf("%s: after the message came %s", mode, told(list))
		}
		w.refused(http.StatusConflict, http.MethodPost, "/v1/runs/"+run+"/decisions", `{"decisions":[{"target":"ticket","action":"allow"}]}`)
	}
}

// TestLive: messages reach a run under way, and begin one when there is none.
func TestLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	first := w.submit("/v1/threads/t/runs", say("hold"))
	<-w.mind.begun
	second := w.submit("/v1/threads/t/runs", say("say more", `"mode":"live"`))
	if second.Run != first.Run {
		t.Errorf("the message went to %+v, want run %s", second, first.Run)
	}
	close(w.mind.release)
	if last := w.follow(first.Run, "").until("settled"); last[len(last)-1].field(t, "output") != "more" {
		t.Errorf("the run is %s", told(last))
	}
	third := w.submit("/v1/threads/t/runs", say("say later", `"mode":"live"`))
	if third.Run == first.Run {
		t.Error("the message went to a run that had ended")
	}
	w.follow(third.Run, "").until("settled")
}

// TestInterrupt: an interrupt cancels the tool under way, reports that, and has no effect a second time.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	run := w.submit("/v1/threads/t/runs", say("slow")).Run
	<-w.mind.begun
	s := w.follow(run, "")
	for i, want := range []bool{true, false} {
		var out struct{ Effect bool }
		w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/interrupt", "").decode(t, &out)
		if out.Effect != want {
			t.Errorf("interrupt %d has effect %v", i+1, out.Effect)
		}
		if i == 0 {
			s.until("settled")
		}
	}
	next := w.submit("/v1/threads/t/runs", say("say next"))
	if list := w.follow(next.Run, "").until("settled"); list[len(list)-1].field(t, "output") != "next" {
		t.Errorf("the next run is %s", list[len(list)-1].data)
	}
}

// TestForeground: a request in the foreground interrupts the run under way.
func TestForeground(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	first := w.submit("/v1/threads/t/runs", say("hold"))
	<-w.mind.begun
	second := w.submit("/v1/threads/t/runs", say("say now", `"mode":"foreground"`))
	if last := w.follow(first.Run, "").until("settled"); last[len(last)-1].field(t, "status") != "done" {
		t.Errorf("the first run is %s", last[len(last)-1].data)
	}
	w.follow(second.Run, "").until("settled")
}

// TestCancel: a run is cancelled under way, queued, or waiting, and once.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	under := w.submit("/v1/threads/t/runs", say("hold")).Run
	<-w.mind.begun
	queued := w.submit("/v1/threads/t/runs", say("say something")).Run
	waiting := w.submit("/v1/threads/u/runs", say("ask")).Run
	s := w.follow(waiting, "")
	s.until("run_waiting")
	for _, run := range []string{queued, under, waiting} {
		for i, want := range []bool{true, false} {
			var out struct{ Effect bool }
			w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/cancel", "").decode(t, &out)
			if out.Effect != want {
				t.Errorf("cancelling %d has effect %v", i+1, out.Effect)
			}
			if list := w.follow(run, "").until("settled"); list[len(list)-1].field(t, "termination") != "cancelled" {
				t.Errorf("the run is %s", list[len(list)-1].data)
			}
		}
	}
	s.until("settled")
}

// TestOnDisconnect: a client that leaves cancels its run only if it asked for that.
func TestOnDisconnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	cancels := w.stream(http.MethodPost, "/v1/threads/t/runs?on_disconnect=cancel", say("hold"))
	<-w.mind.begun
	first := cancels.until("run_started")[0].run(t)
	stays := w.stream(http.MethodPost, "/v1/threads/u/runs", say("hold"))
	<-w.mind.begun
	second := stays.until("run_started")[0].run(t)
	stays.close()
	cancels.close()
	if list := w.follow(first, "").until("settled"); list[len(list)-1].field(t, "termination") != "cancelled" {
		t.Errorf("the run is %s", list[len(list)-1].data)
	}
	close(w.mind.release)
	if list := w.follow(second, "").until("settled"); list[len(list)-1].field(t, "output") != "released" {
		t.Errorf("the run is %s", list[len(list)-1].data)
	}
}

// TestIdempotency: the same key and body is the same run, in another process too, and another
// body is refused.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	one := newWorld(t, options{})
	two := newWorld(t, options{store: one.store, mind: one.mind})
	first := one.submit("/v1/runs", say("say once"), "Idempotency-Key", "k")
	again := two.submit("/v1/runs", say("say once", `"idempotency_key":"k"`))
	if !again.Repeated || first.Repeated || again.Run != first.Run || again.Thread != first.Thread || again.Dispatch != first.Dispatch {
		t.Errorf("the first request is %+v, the second %+v", first, again)
	}
	for _, body := range []string{say("say twice"), say("say once", `"priority":1`), say("say once", `"agent":"a"`)} {
		two.refused(http.StatusConflict, http.MethodPost, "/v1/runs", body, "Idempotency-Key", "k")
	}
	two.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/runs", say("say once", `"idempotency_key":"l"`), "Idempotency-Key", "k")
	other := two.submit("/v1/threads/t/runs", say("say twice"), "Idempotency-Key", "k")
	if other.Run == first.Run {
		t.Error("a key counts within its thread")
	}
	if list := two.stream(http.MethodPost, "/v1/runs", say("say once"), "Idempotency-Key", "k").rest(); list[len(list)-1].name != "settled" {
		t.Errorf("the same request as a stream is %s", told(list))
	}
}

// TestGap: events that are not kept become a gap, with the number from which it continues.
func TestGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{runtime: func(c *mortise.Config) { c.Mailbox.Events.Count, c.Mailbox.Events.Pause = 4, -1 }})
	run := w.stream(http.MethodPost, "/v1/threads/t/runs", say("say a b c d e f")).until("settled")[0].run(t)
	list := w.follow(run, "1-1").rest()
	if list[0].name != "gap" || list[0].field(t, "messages") != "/v1/threads/t/messages" || !strings.HasSuffix(told(list), "run_ended settled") {
		t.Errorf("the events are %v", list)
	}
	if again := w.follow(run, list[0].id).rest(); !slices.Equal(again, list[1:]) {
		t.Errorf("after the gap comes %s, want %s", told(again), told(list[1:]))
	}
}

// TestSubmission_refuses: what cannot be submitted is refused, and names the field.
func TestSubmission_refuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for body, want := range map[string]string{
		say("hi", `"agent":"nobody"`):                                           "body.agent",
		say("hi", `"mode":"foreground"`, `"not_before":"2030-01-01T00:00:00Z"`): "body.not_before",
		`{}`:                              "body.input",
		`{"input":"x","mode":"sideways"}`: "body.mode",
	} {
		p := problem{}
		a := w.do(http.MethodPost, "/v1/runs", body)
		a.decode(t, &p)
		if a.StatusCode != http.StatusUnprocessableEntity || p.Field != want {
			t.Errorf("%s: %d %+v, want %s", body, a.StatusCode, p, want)
		}
	}
	w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/runs?after=1-1", say("hi"))
	w.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/runs/x/events?after=seven", "")
	w.want(http.StatusAccepted, http.MethodPost, "/v1/runs", `{"input":[{"role":"user","content":[{"type":"text","text":"say hi"}]}]}`)
	other := w.submit("/v1/threads/t/runs", say("say hi", `"tenant":"one"`))
	twice := `{"input":[{"id":"m","role":"user","content":[{"type":"text","text":"a"}]},{"id":"m","role":"user","content":[{"type":"text","text":"b"}]}]}`
	for _, c := range [][3]string{
		{"t", say("say hi", `"tenant":"two"`), `thread "t" belongs to another tenant`},
		{"t", twice, `two messages have the id "m"; ids are unique in a thread`},
		{"%00", say("say hi"), "the thread must be UTF-8 without NUL, at most 256 bytes"},
		{"%ff", say("say hi"), "the thread must be UTF-8 without NUL, at most 256 bytes"},
	} {
		if p := w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/threads/"+c[0]+"/runs", c[1]); p.Detail != c[2] {
			t.Errorf("%s %s: %+v", c[0], c[1], p)
		}
	}
	w.follow(other.Run, "").until("settled")
}
