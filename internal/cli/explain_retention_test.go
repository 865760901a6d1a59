package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	runtime "github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/thread"
)

// ack is a model, and a plugin that adds a note to each request.
type ack struct{}

func (ack) Infer(context.Context, llm.Request) (*abi.Response, error) {
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ack")}}, StopReason: abi.StopEndTurn}, nil
}

func (ack) Describe() abi.Description {
	return abi.Description{
		Name: "notes", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform}},
	}
}

func (ack) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Effects: []abi.Effect{{
		Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "style", Content: []abi.ContentBlock{abi.Text("Answer briefly.")}},
	}}}, nil
}

// shelf is a server on a file whose retention keeps the content of two messages.
type shelf struct {
	*testing.T
	*runtime.Runtime

	http    *httptest.Server
	threads *thread.Threads
}

func (s *shelf) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// openShelf returns how to close the server, too.
func openShelf(t *testing.T, path string) (s *shelf, end func()) {
	t.Helper()
	s = &shelf{T: t}
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	s.must(err)
	records, err := thread.NewRecorder(t.Context(), file, thread.RecordConfig{})
	s.must(err)
	s.threads = thread.On(file)
	s.Runtime, err = runtime.New(t.Context(), runtime.Config{
		Store: file, Records: records, Agents: map[string]runtime.Agent{"a": {Model: ack{}}}, Plugins: []phases.Plugin{ack{}},
		Compaction: &compaction.Config{
			Policy: compaction.Policy{
				WindowTokens: 100_000, ThresholdTokens: 2_000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 500, SummaryTokens: 500, BreakerFailures: -1,
			},
			Summarizer: compaction.Ledger{},
		},
		Mailbox: mailbox.Config{Retention: mailbox.Retention{Interval: -1, MaxMessages: 2}},
	})
	s.must(err)
	s.must(s.Start(t.Context()))
	server, err := serve.New(serve.Config{Runtime: s.Runtime, Records: thread.RecordsOf(file)})
	s.must(err)
	s.http = httptest.NewServer(server.Public())
	return s, func() {
		s.http.Close()
		s.must(server.Close())
		ctx := context.WithoutCancel(t.Context())
		s.must(s.Close(ctx))
		s.must(records.Close(ctx))
		s.must(file.Close(ctx))
	}
}

// turn is a run, whose id it returns.
func (s *shelf) turn(text string) string {
	s.Helper()
	inputs, err := agentrun.Inputs(abi.Message{ID: text, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text + strings.Repeat(" filler", 600))}})
	s.must(err)
	sub, err := s.Mailbox().SubmitBackground(s.Context(), mailbox.Request{Thread: "t", Messages: inputs})
	s.must(err)
	d, err := s.Mailbox().Await(s.Context(), sub.Dispatch)
	s.must(err)
	if d.RunStatus != mailbox.RunDone {
		s.Fatalf("the run of %s is %+v", text, d)
	}
	return sub.Run
}

func (s *shelf) get(path string, out any) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.http.URL+path, http.NoBody)
	s.must(err)
	resp, err := s.http.Client().Do(req)
	s.must(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.Fatalf("%s: %s", path, resp.Status)
	}
	s.must(json.NewDecoder(resp.Body).Decode(out))
}

// messages reads all pages, oldest first.
func (s *shelf) messages() (all []abi.Message) {
	s.Helper()
	for before := ""; ; {
		var page struct {
			Messages []struct {
				Seq     int
				Message abi.Message
			}
			Before int
		}
		s.get("/v1/threads/t/messages?limit=3"+before, &page)
		var own []abi.Message
		for i, m := range page.Messages {
			if i > 0 && m.Seq != page.Messages[i-1].Seq+1 {
				s.Errorf("message %d follows %d", m.Seq, page.Messages[i-1].Seq)
			}
			own = append(own, m.Message)
		}
		all = append(own, all...)
		if page.Before == 0 {
			return all
		}
		before = fmt.Sprint("&before=", page.Before)
	}
}

// TestReadsAfterRetention: when retention has dropped the content of messages, the server still lists each of them, and the decisions
// of the runs that they belong to are as they were, there and in mortise explain.
func TestReadsAfterRetention(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kept.db")
	s, end := openShelf(t, path)
	var runs []string
	for total := 0; total < 2 && len(runs) < 30; {
		runs = append(runs, s.turn(fmt.Sprint("turn-", len(runs))))
		state, _, err := s.threads.State(t.Context(), "t")
		s.must(err)
		total = state.Total
	}
	var decided, after struct{ Entries []thread.Decision }
	before := s.messages()
	s.get("/v1/threads/t/decisions?run="+runs[0], &decided)
	s.must(s.Mailbox().GC(t.Context()))

	state, _, err := s.threads.State(t.Context(), "t")
	s.must(err)
	if state.Dropped == 0 {
		t.Fatalf("nothing was dropped after %d compactions", state.Total)
	}
	now := s.messages()
	if len(now) != len(before) || len(now) != 2*len(runs) {
		t.Fatalf("%d messages are listed, %d before, of %d runs", len(now), len(before), len(runs))
	}
	empty := 0
	for i := range now {
		dropped := now[i].Text() != before[i].Text()
		if dropped {
			empty++
		}
		if now[i].ID != before[i].ID || !dropped && now[i].Role != before[i].Role {
			t.Errorf("message %d is %s of %s, want %s of %s", i, now[i].ID, now[i].Role, before[i].ID, before[i].Role)
		}
	}
	if last := len(now) - 1; empty != state.Dropped || now[last].Text() != "ack" || !strings.HasPrefix(now[last-1].Text(), "turn-") {
		t.Errorf("%d messages have another text, %d were dropped; the last is %q", empty, state.Dropped, now[last].Text())
	}
	s.get("/v1/threads/t/decisions?run="+runs[0], &after)
	if len(after.Entries) == 0 || !reflect.DeepEqual(after, decided) {
		t.Errorf("decisions are %+v, were %+v", after.Entries, decided.Entries)
	}
	end()

	code, stdout, stderr := mortise(t.Context(), "", "explain", runs[0], "--store", path)
	if code != exit.OK || !strings.Contains(stdout, "notes") || !strings.Contains(stdout, "run "+runs[0]) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
