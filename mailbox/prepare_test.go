package mailbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

// carried carries a request out and returns the job that the runtime got.
func carried(t *testing.T, r mailbox.Request) *mailbox.Job {
	t.Helper()
	s := &script{}
	m := started(t, mailbox.Config{Runtime: s})
	background(t, m, r)
	sleep(0)
	if len(s.jobs) != 1 {
		t.Fatalf("%d executions", len(s.jobs))
	}
	return s.jobs[0]
}

func TestRequest(t *testing.T) {
	t.Parallel()
	check := func(r mailbox.Request) (mailbox.Submission, error) {
		m, err := mailbox.New(t.Context(), mailbox.Config{Store: memstore.New(), Runtime: &script{}})
		if err != nil {
			return mailbox.Submission{}, err
		}
		return m.SubmitBackground(t.Context(), r)
	}
	generated := func(t *testing.T) {
		for _, thread := range []string{"", " \t"} {
			sub, err := check(request(thread, "x"))
			must(t, err)
			equal(t, "length of the thread's id", len(sub.Thread), 36)
		}
	}
	cases(t, map[string]func(*testing.T){
		"run_request_fields": func(t *testing.T) {
			r := mailbox.Request{
				Thread: "t", Tenant: "acme", Agent: "a", Parent: "p", Origin: "a2a", Adapter: "http", Mode: "special", Extras: []byte("e"), NewRun: "r",
				TransportRequestID: "http-1", SenderID: "alice", ParentThreadID: "above", DispatchIDHint: "hint",
				Messages: []mailbox.Input{{ID: "m", Data: []byte("x")}}, Priority: -10, MaxAttempts: 3, Dedupe: "d",
			}
			j := carried(t, r)
			got := j.Request
			equal(t, "thread and tenant", got.Thread+" "+got.Tenant, "t acme")
			equal(t, "words", strings.Join([]string{got.Agent, got.Parent, got.Origin, got.Adapter, got.Mode, string(got.Extras)}, " "), "a p a2a http special e")
			equal(t, "ids from outside", strings.Join([]string{got.TransportRequestID, got.SenderID, got.ParentThreadID, got.DispatchIDHint}, " "), "http-1 alice above hint")
			equal(t, "dispatch", j.Dispatch.ID, "hint")
			equal(t, "message", got.Messages[0].ID+" "+string(got.Messages[0].Data), "m x")
			equal(t, "run", j.Run.ID+" "+j.Run.Agent+" "+j.Run.Parent, "r a p")
			equal(t, "priority", j.Dispatch.Priority, 118)
			equal(t, "attempts", j.Dispatch.MaxAttempts, 3)
			equal(t, "dedupe key", j.Dispatch.Dedupe, "d")
		},
		"run_spec_validation_empty_messages_errors": func(t *testing.T) {
			_, err := check(mailbox.Request{Thread: "t"})
			if !errors.Is(err, mailbox.ErrInvalid) || !strings.HasSuffix(err.Error(), "validation error: at least one message is required") {
				t.Errorf("without messages: %v", err)
			}
		},
		"run_spec_validation_allows_decision_only_resume": func(t *testing.T) {
			_, err := check(mailbox.Request{Thread: "t", Decisions: []mailbox.Decision{{Call: "c"}}})
			must(t, err)
		},
		"run_spec_validation_blank_thread_id_generates_new": generated,
		"validate_run_inputs_empty_string_generates_uuid":   generated,
		"run_spec_validation_trims_thread_id": func(t *testing.T) {
			sub, err := check(request("  t\n", "x"))
			must(t, err)
			equal(t, "thread", sub.Thread, "t")
		},
		"validate_run_inputs_preserves_normal_thread_id": func(t *testing.T) {
			sub, err := check(request("thread-1", "x"))
			must(t, err)
			equal(t, "thread", sub.Thread, "thread-1")
		},
		"validate_run_inputs_multiple_messages": func(t *testing.T) {
			j := carried(t, mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("a")}, {Data: []byte("b")}, {ID: "mine", Data: []byte("c")}}})
			var texts []string
			for _, in := range j.Request.Messages {
				texts = append(texts, string(in.Data))
			}
			equal(t, "messages", strings.Join(texts, ""), "abc")
			if m := j.Request.Messages; m[0].ID == "" || m[0].ID == m[1].ID || m[2].ID != "mine" {
				t.Errorf("ids are %+v", m)
			}
		},
		"prepare_run_preserves_request_extras_on_run_snapshot": func(t *testing.T) {
			r := request("t", "x")
			r.Extras = []byte{0, 1, 255}
			equal(t, "extras", string(carried(t, r).Request.Extras), string(r.Extras))
			equal(t, "extras of a request without", len(carried(t, request("t", "x")).Request.Extras), 0)
		},
		"build_dispatch_extras_roundtrip_with_decisions": func(t *testing.T) {
			r := mailbox.Request{Thread: "t", Extras: []byte("e"), Decisions: []mailbox.Decision{{Call: "c1", Data: []byte("yes")}, {Call: "c2"}}}
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s})
			background(t, m, r)
			sleep(0)
			got := s.jobs[0].Request
			equal(t, "mode", got.Mode, "resume")
			equal(t, "extras", string(got.Extras), "e")
			equal(t, "decisions", len(got.Decisions), 2)
			equal(t, "decision", got.Decisions[0].Call+string(got.Decisions[0].Data)+got.Decisions[1].Call, "c1yesc2")
		},
		"prepare_run_round_trips_parent_thread_id": func(t *testing.T) {
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s})
			parent := background(t, m, request("parent", "x"))
			sleep(0)
			r := request("child", "x")
			r.Parent = parent.Run
			child := background(t, m, r)
			sleep(0)
			equal(t, "parent of the job", s.jobs[1].Run.Parent, parent.Run)
			run := wantRun(t, m, child.Run, mailbox.RunDone, "natural")
			up := wantRun(t, m, run.Parent, mailbox.RunDone, "natural")
			equal(t, "its thread", up.Thread, "parent")
		},
		"prepare_run_preserves_origin_metadata": func(t *testing.T) {
			r := request("t", "x")
			r.Origin, r.Adapter = mailbox.OriginInternal, "acp"
			r.Parent, r.ParentThreadID, r.SenderID, r.TransportRequestID = "parent run", "parent thread", "alice", "acp-7"
			j := carried(t, r)
			equal(t, "parent run", j.Request.Parent+", "+j.Run.Parent, "parent run, parent run")
			equal(t, "ids from outside", strings.Join([]string{j.Request.ParentThreadID, j.Request.SenderID, j.Request.TransportRequestID}, " "), "parent thread alice acp-7")
			equal(t, "origin", j.Request.Origin+" "+j.Dispatch.Origin, "internal internal")
			equal(t, "adapter", j.Request.Adapter, "acp")
			equal(t, "mode", j.Request.Mode, "internal_wake")
		},
		"prepare_run_defaults_origin_to_user": func(t *testing.T) {
			j := carried(t, request("t", "x"))
			equal(t, "origin", j.Request.Origin+" "+j.Dispatch.Origin, "user user")
		},
		"prepare_run_origin_a2a_roundtrip": func(t *testing.T) {
			r := request("t", "x")
			r.Origin, r.Adapter, r.Parent, r.SenderID = "a2a", "a2a", "parent run", "peer"
			j := carried(t, r)
			equal(t, "parent run", j.Run.Parent, "parent run")
			equal(t, "adapter and sender", j.Request.Adapter+" "+j.Request.SenderID, "a2a peer")
			equal(t, "origin", j.Request.Origin+" "+j.Dispatch.Origin, "a2a a2a")
			equal(t, "mode", j.Request.Mode, "scheduled")
		},
		"build_dispatch_sets_correct_fields": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			sub := queued(t, m, request("t", "x"))
			d := wantStatus(t, m, sub.Dispatch, mailbox.Queued)
			equal(t, "priority", d.Priority, mailbox.PriorityDefault)
			equal(t, "numbers", [3]int{d.Attempts, d.MaxAttempts, int(d.Epoch)}, [3]int{0, 5, 0})
			equal(t, "what it has not", d.Dedupe+d.LastError+d.Token+d.Owner+d.Instance+string(d.RunStatus)+d.Termination+d.Response+d.RunError, "")
			equal(t, "due", d.AvailableAt, time.Now().UTC())
			equal(t, "completed", d.CompletedAt.IsZero(), true)
			equal(t, "run", d.RunID, sub.Run)
		},
		"build_dispatch_requires_prepared_run_id": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			_, err := m.Enqueue(t.Context(), mailbox.Entry{ID: "d", Request: mailbox.Request{Thread: "t"}})
			if !errors.Is(err, mailbox.ErrInvalid) || !strings.Contains(err.Error(), "id of a run") {
				t.Errorf("an entry without a run: %v", err)
			}
		},
	})
}

// TestDispatchIDHint: the hint names the dispatch, once.
func TestDispatchIDHint(t *testing.T) {
	t.Parallel()
	hinted := func(thread, message string) mailbox.Request {
		r := request(thread, message)
		r.Messages[0].ID, r.DispatchIDHint = "id of "+message, "hint"
		return r
	}
	cases(t, map[string]func(*testing.T){
		"same_request_again": func(t *testing.T) {
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s})
			first := background(t, m, hinted("t", "x"))
			sleep(0)
			r := hinted("t", "x")
			r.TransportRequestID = "another try"
			again := background(t, m, r)
			sleep(0)
			equal(t, "dispatches", first.Dispatch+" "+again.Dispatch, "hint hint")
			equal(t, "repeated", again.Repeated, true)
			s.wantRan(t, "x")
		},
		"another_request_is_not_lost": func(t *testing.T) {
			s := &script{do: untilStopped}
			m := started(t, mailbox.Config{Runtime: s})
			first := background(t, m, hinted("t", "x"))
			busy := background(t, m, request("busy", "z"))
			sleep(0)
			for _, thread := range []string{"t", "busy"} {
				_, err := m.SubmitBackground(t.Context(), hinted(thread, "y"))
				_, err2 := m.Submit(t.Context(), hinted(thread, "y"))
				if !errors.Is(err, mailbox.ErrExists) || !errors.Is(err2, mailbox.ErrExists) {
					t.Errorf("another request with the hint for thread %q: %v, %v", thread, err, err2)
				}
			}
			wantStatus(t, m, first.Dispatch, mailbox.Claimed)
			wantStatus(t, m, busy.Dispatch, mailbox.Claimed) // and nothing was interrupted
		},
		"with_a_key": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			r := hinted("t", "x")
			r.Key = "key"
			if _, err := m.SubmitBackground(t.Context(), r); !errors.Is(err, mailbox.ErrInvalid) || !strings.Contains(err.Error(), "leave one of them out") {
				t.Errorf("a key and a hint: %v", err)
			}
		},
		"transport_request_id_of_another_try": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			r := request("t", "x")
			r.Key, r.TransportRequestID = "key", "http-1"
			first := background(t, m, r)
			r.TransportRequestID = "http-2"
			equal(t, "dispatch", background(t, m, r).Dispatch, first.Dispatch)
		},
		"wrong_ids": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			for name, set := range map[string]func(*mailbox.Request, string){
				"transport request id": func(r *mailbox.Request, id string) { r.TransportRequestID = id },
				"sender id":            func(r *mailbox.Request, id string) { r.SenderID = id },
				"parent thread id":     func(r *mailbox.Request, id string) { r.ParentThreadID = id },
				"dispatch id hint":     func(r *mailbox.Request, id string) { r.DispatchIDHint = id },
			} {
				for _, id := range []string{"a\x00b", "\xff", strings.Repeat("x", 257)} {
					r := request("t", "x")
					set(&r, id)
					if _, err := m.SubmitBackground(t.Context(), r); !errors.Is(err, mailbox.ErrInvalid) || !strings.Contains(err.Error(), "the "+name+" must be") {
						t.Errorf("%s %.10q: %v", name, id, err)
					}
				}
			}
		},
	})
}

// remembers is a runtime that writes its messages to the log, and the image.
func remembers(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	c := mailbox.Commit{ID: j.Dispatch.Instance, From: j.Messages, Image: []byte("image of " + j.Run.ID)}
	for _, in := range j.Request.Messages {
		c.Append = append(c.Append, mailbox.Message{ID: in.ID, Run: j.Run.ID, Data: in.Data})
	}
	return mailbox.Result{Termination: "natural"}, j.Commit(ctx, c)
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"prepare_run_for_dispatch_precreates_created_run_and_thread_projection": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			r := request("t", "x")
			r.Messages[0].ID, r.NewRun = "m1", "hint"
			sub := queued(t, m, r)
			equal(t, "run", sub.Run, "hint")
			run := wantRun(t, m, "hint", mailbox.RunCreated, "")
			equal(t, "its input", strings.Join(run.Input, " "), "m1")
			h := record(t, m, "t")
			equal(t, "open and latest run", h.Open.ID+" "+h.Latest.ID, "hint hint")
			equal(t, "claimed", h.Claim != nil, false)
			equal(t, "log", h.Messages, 0)
		},
		"prepare_run_for_dispatch_inherits_previous_runtime_state": func(t *testing.T) {
			var found []string
			s := &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
				_, image, err := j.Load(ctx)
				must(t, err)
				found = append(found, string(image))
				return remembers(ctx, j)
			}}
			m := started(t, mailbox.Config{Runtime: s})
			r := request("t", "one")
			r.Agent = "writer"
			first := background(t, m, r)
			sleep(0)
			background(t, m, request("t", "two"))
			sleep(0)
			j := s.jobs[1]
			equal(t, "agent", j.Run.Agent, "writer")
			equal(t, "messages before the second run", j.Messages, 1)
			equal(t, "log", record(t, m, "t").Messages, 2)
			equal(t, "state that the runs found", strings.Join(found, "|"), "|image of "+first.Run)
		},
		"reusable_waiting_run_prefers_thread_open_run_projection_over_latest_run": func(t *testing.T) {
			s := &script{do: waitsOnce("user_input")}
			m := started(t, mailbox.Config{Runtime: s})
			waits := background(t, m, request("t", "first"))
			sleep(0)
			later := request("t", "another")
			later.Run, later.At = "latest", time.Now().Add(time.Hour)
			background(t, m, later)
			h := record(t, m, "t")
			equal(t, "open and latest run", h.Open.ID+" "+h.Latest.ID, waits.Run+" latest")
			equal(t, "run that continues", background(t, m, request("t", "more")).Run, waits.Run)
		},
		"thread_context_cache_used_by_reusable_waiting_run_id": func(t *testing.T) {
			store, off := memstore.New(), &switched{}
			m := started(t, mailbox.Config{Runtime: &script{do: waitsOnce("user_input")}, Store: store})
			waits := background(t, m, request("t", "first"))
			sleep(0)
			must(t, m.Stop(t.Context())) // what it claimed, the other process would not know
			counted := open(t, mailbox.Config{Runtime: &script{}, Store: &mailboxtest.Faulty{Store: store, Plan: off.plan}})
			equal(t, "run", background(t, counted, request("t", "more")).Run, waits.Run)
			equal(t, "transitions, the first one as if the thread were new", off.asked("apply"), 2)
			background(t, counted, request("t", "and more"))
			equal(t, "transitions", off.asked("apply"), 3)
			equal(t, "looks", off.asked("scan dispatch")+off.asked("scan run"), 0)
		},
		"thread_context_cache_updated_after_prepare_checkpoint": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			for _, text := range []string{"one", "two"} {
				sub := queued(t, m, request("t", text))
				equal(t, "latest run", record(t, m, "t").Latest.ID, sub.Run)
			}
		},
		"prepare_run_falls_back_to_store_without_cache": func(t *testing.T) {
			store := memstore.New()
			m := started(t, mailbox.Config{Runtime: &script{do: waitsOnce("user_input")}, Store: store})
			waits := background(t, m, request("t", "first"))
			sleep(0)
			fresh := open(t, mailbox.Config{Runtime: &script{}, Store: store})
			equal(t, "run", background(t, fresh, request("t", "more")).Run, waits.Run)
		},
		"prepare_run_uses_durable_messages_when_active_cache_is_stale": durableMessages,
		"reusable_waiting_run_id_ignores_stale_worker_cache": func(t *testing.T) {
			store := memstore.New()
			here := started(t, mailbox.Config{Runtime: &script{do: waitsOnce("user_input")}, Store: plain{store}})
			waits := background(t, here, request("t", "first"))
			sleep(0)
			there := open(t, mailbox.Config{Runtime: &script{}, Store: store})
			ok, err := there.CancelRun(t.Context(), waits.Run)
			must(t, err)
			equal(t, "cancelled", ok, true)
			if sub := background(t, here, request("t", "more")); sub.Run == waits.Run {
				t.Error("a run that another process has ended continues")
			}
		},
		"reusable_waiting_run_id_returns_none_for_done_cached_run": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{}})
			done := background(t, m, request("t", "first"))
			sleep(0)
			wantRun(t, m, done.Run, mailbox.RunDone, "natural")
			if sub := background(t, m, request("t", "more")); sub.Run == done.Run {
				t.Error("a run that is done continues")
			}
		},
		"thread_context_cache_cleared_on_idle_transition": func(t *testing.T) {
			store := memstore.New()
			s := &script{do: remembers}
			here := started(t, mailbox.Config{Runtime: s, Store: store, Owner: "here"})
			background(t, here, request("t", "one"))
			sleep(0)
			must(t, here.Stop(t.Context()))
			there := started(t, mailbox.Config{Runtime: &script{do: remembers}, Store: store, Owner: "there"})
			background(t, there, request("t", "two"))
			sleep(0)
			must(t, there.Stop(t.Context()))
			must(t, here.Start(t.Context()))
			background(t, here, request("t", "three"))
			sleep(0)
			equal(t, "messages that the second execution here found", s.jobs[1].Messages, 2)
		},
		"thread_context_load_populates_run_cache": func(t *testing.T) {
			store, off, s := memstore.New(), &switched{}, &script{}
			m := started(t, mailbox.Config{Runtime: s, Store: &mailboxtest.Faulty{Store: store, Plan: off.plan}})
			read := 0
			for i := range 8 {
				r := request("t"+string(rune('a'+i)), "x")
				r.Agent = "writer"
				sub := background(t, m, r)
				sleep(0)
				j := s.jobs[i]
				equal(t, "run", j.Run.ID+" "+j.Run.Agent+" "+string(j.Run.Status), sub.Run+" writer running")
				reads := off.asked("read") - read
				read += reads
				equal(t, "reads of a thread that this process has made", reads, 0)
			}
		},
	})
}

// durableMessages: two processes take turns on a thread, and each finds what the other one wrote.
func durableMessages(t *testing.T) {
	store := memstore.New()
	boxes := []*mailbox.Mailbox{}
	for _, owner := range []string{"a", "b"} {
		boxes = append(boxes, started(t, mailbox.Config{Runtime: &script{do: remembers}, Store: plain{store}, Owner: owner}))
	}
	for i, text := range []string{"one", "two", "three"} {
		sub := background(t, boxes[i%2], request("t", text))
		sleep(0)
		wantStatus(t, boxes[0], sub.Dispatch, mailbox.Acked)
	}
	list, err := boxes[0].Messages(t.Context(), "t", 1, 10)
	must(t, err)
	var texts []string
	for _, m := range list {
		texts = append(texts, string(m.Data))
	}
	if !slices.Equal(texts, []string{"one", "two", "three"}) {
		t.Errorf("log is %q", texts)
	}
}
