package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

// pins is a plugin that adds a message to each request.
type pins struct{}

func (pins) Describe() abi.Description {
	return abi.Description{
		Name: "pins", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform}},
	}
}

func (pins) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Effects: []abi.Effect{{
		Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "style", Content: []abi.ContentBlock{abi.Text("Answer briefly.")}},
	}}}, nil
}

type messageList struct {
	Messages []struct {
		Seq     int
		Message abi.Message
	}
	Before int
}

// TestThread: a thread has its counts, and its messages in pages.
func TestThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for i := range 3 {
		w.follow(w.submit("/v1/threads/t/runs", say(fmt.Sprint("say ", i))).Run, "").until("settled")
	}
	var view struct {
		ID       string
		Messages int
		Latest   struct{ Status string } `json:"latest_run"`
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/threads/t", "").decode(t, &view)
	if view.ID != "t" || view.Messages != 6 || view.Latest.Status != "done" {
		t.Errorf("the thread is %+v", view)
	}
	var seqs []int
	for before := ""; ; {
		var page messageList
		w.want(http.StatusOK, http.MethodGet, "/v1/threads/t/messages?limit=4"+before, "").decode(t, &page)
		for i := range page.Messages {
			seqs = append(seqs, page.Messages[i].Seq)
		}
		if page.Before == 0 {
			break
		}
		before = fmt.Sprint("&before=", page.Before)
	}
	if got := fmt.Sprint(seqs); got != "[3 4 5 6 1 2]" {
		t.Errorf("the messages are %s", got)
	}
	w.refused(http.StatusNotFound, http.MethodGet, "/v1/threads/u", "")
	w.refused(http.StatusNotFound, http.MethodGet, "/v1/threads/u/messages", "")
	w.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/threads/t/messages?limit=0", "")
	w.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/threads/t/messages?view=model&before=2", "")
}

// TestCompaction: a thread is compacted when a client asks for it, which the view of the model
// shows, and the decisions of its runs too; then it is undone.
func TestCompaction(t *testing.T) {
	t.Parallel()
	kept := memstore.New()
	records, err := thread.NewRecorder(t.Context(), kept, thread.RecordConfig{})
	must(t, err)
	t.Cleanup(func() { _ = records.Close(context.WithoutCancel(t.Context())) })
	memory, swapped := compaction.NewMemory(), make(chan compaction.Event, 100)
	w := newWorld(t, options{
		runtime: func(c *mortise.Config) {
			c.Plugins, c.Records = []phases.Plugin{pins{}}, records
			c.Compaction = &compaction.Config{
				Policy: compaction.Policy{
					WindowTokens: 100_000, ThresholdTokens: 50_000, KeepRecentTokens: 1, KeepRecentMessages: 1,
					MinRangeTokens: 100, SummaryTokens: 500, MinSavingsRatio: 0.01, BreakerFailures: -1, MinSurvival: -1,
				},
				Summarizer: summarizer{}, Store: memory,
				Observe: func(e compaction.Event) {
					if e.Kind != compaction.EventAdmission && e.Kind != compaction.EventStarted {
						swapped <- e
					}
				},
			}
		},
		serve: func(c *serve.Config) { c.Sessions, c.Records = sessions{memory}, thread.RecordsOf(kept) },
	})
	talk := func(text string) string {
		run := w.submit("/v1/threads/t/runs", say("say "+text)).Run
		w.follow(run, "").until("settled")
		return run
	}
	for range 3 {
		talk(strings.Repeat("filler ", 300))
	}
	w.want(http.StatusConflict, http.MethodDelete, "/v1/threads/t/compactions/latest", "")
	if a := w.want(http.StatusAccepted, http.MethodPost, "/v1/threads/t/compactions", `{"focus":"names"}`); !strings.Contains(string(a.body), `"begins":"next_run"`) {
		t.Errorf("of an idle thread the answer is %s", a.body)
	}
	run := talk("go")
	for len(swapped) == 0 {
		run = talk("on")
	}
	if e := <-swapped; e.Kind != compaction.EventSwapped {
		t.Fatalf("the compaction came to %+v", e)
	}
	view := func() string {
		return string(w.want(http.StatusOK, http.MethodGet, "/v1/threads/t/messages?view=model", "").body)
	}
	if text := view(); !strings.Contains(text, "SUMMARY") {
		t.Errorf("the model sees %.2000s", text)
	}
	var list struct {
		Total   int
		Markers []compaction.Marker
		Events  []compaction.Event
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/threads/t/compactions", "").decode(t, &list)
	if list.Total != 1 || len(list.Markers) != 1 || len(list.Events) == 0 {
		t.Errorf("the compactions are %+v", list)
	}
	var decided struct {
		Run     string `json:"run_id"`
		Entries []thread.Decision
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/threads/t/decisions", "").decode(t, &decided)
	if decided.Run != run || !slices.ContainsFunc(decided.Entries, func(e thread.Decision) bool { return e.Plugin == "pins" }) {
		t.Errorf("decided is %+v", decided)
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/threads/t/decisions?run="+run, "")
	other := w.submit("/v1/threads/u/runs", say("say hi")).Run
	w.follow(other, "").until("settled")
	w.refused(http.StatusNotFound, http.MethodGet, "/v1/threads/t/decisions?run="+other, "")
	w.want(http.StatusNoContent, http.MethodDelete, "/v1/threads/t/compactions/latest", "")
	if text := view(); strings.Contains(text, "SUMMARY") {
		t.Errorf("after the undo the model sees %.2000s", text)
	}
}

type summarizer struct{}

func (summarizer) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	return &abi.Summary{Text: "SUMMARY"}, nil
}

// TestAnswers: the record of a run has who decided about its calls, what, why and when, and no result.
func TestAnswers(t *testing.T) {
	t.Parallel()
	kept := memstore.New()
	records, err := thread.NewRecorder(t.Context(), kept, thread.RecordConfig{})
	must(t, err)
	t.Cleanup(func() { _ = records.Close(context.WithoutCancel(t.Context())) })
	w := newWorld(t, options{
		runtime: func(c *mortise.Config) { c.Records = records },
		serve: func(c *serve.Config) {
			c.Tokens = []serve.Token{{Name: "ann", Secret: runToken, Scopes: []string{serve.ScopeRun, serve.ScopeRead}}}
			c.Records = thread.RecordsOf(kept)
		},
	})
	as := []string{"Authorization", "Bearer " + runToken}
	for choice, body := range map[string]string{
		"allow": `"reason":"it is cheap","result":"hunter22"`, "deny": `"reason":"it is dear"`, "result": `"result":"hunter22"`,
	} {
		var id ids
		begin := time.Now()
		w.want(http.StatusAccepted, http.MethodPost, "/v1/threads/"+choice+"/runs", say("ask me"), as...).decode(t, &id)
		path := "/v1/threads/" + choice + "/decisions?run=" + id.Run
		for !strings.Contains(string(w.do(http.MethodGet, "/v1/runs/"+id.Run, "", as...).body), `"waiting"`) {
			time.Sleep(5 * time.Millisecond)
		}
		w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+id.Run+"/decisions", `{"decisions":[{"target":"ticket","action":"`+choice+`",`+body+`}]}`, as...)
		for !strings.Contains(string(w.do(http.MethodGet, "/v1/runs/"+id.Run, "", as...).body), `"done"`) {
			time.Sleep(5 * time.Millisecond)
		}
		var decided struct{ Entries []thread.Decision }
		a := w.want(http.StatusOK, http.MethodGet, path, "", as...)
		a.decode(t, &decided)
		reason := map[string]string{"allow": "it is cheap", "deny": "it is dear"}[choice]
		want := thread.Answer{Ticket: "ticket", Choice: choice, Reason: reason, By: "ann"}
		if len(decided.Entries) != 1 || decided.Entries[0].Answer == nil || *decided.Entries[0].Answer != want || decided.Entries[0].Tool != "ask" || decided.Entries[0].CallID != "call_ask" || decided.Entries[0].At.Before(begin) {
			t.Errorf("%s: the record is %s", choice, a.body)
		}
		if strings.Contains(string(a.body), "hunter22") {
			t.Errorf("the record has a result: %s", a.body)
		}
	}
}
