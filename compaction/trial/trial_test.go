package trial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// facts are what a summary should keep.
const facts = "Error: the disk is full at last. See services/billing/retry.go and services/billing/retry.go and services/ledger/close.go and services/ledger/close.go."

func request(thread, version string) trial.Request {
	q := trial.Request{Version: version, Bytes: 2000, Summarize: &abi.SummarizeRequest{
		ThreadID: thread, BudgetTokens: 500,
		Messages: []abi.Message{{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(facts + strings.Repeat(" It has to work.", 100))}}},
	}}
	if version != "" {
		q.Summary, q.Took = &abi.Summary{Text: facts}, time.Second
	}
	return q
}

func requests(n int) []trial.Request {
	var out []trial.Request
	for i := range n {
		out = append(out, request(fmt.Sprintf("t%d", i), "v1"))
	}
	return out
}

type ask = trial.Ask[abi.SummarizeRequest, abi.Summary]

func says(text string) ask {
	return func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		return &abi.Summary{Text: text}, nil
	}
}

func hangs(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// never is the policy in use where its answers were recorded.
func never(t *testing.T) ask {
	t.Helper()
	return func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		t.Error("the policy in use was asked again")
		return nil, errors.New("asked again")
	}
}

// TestSummaries: what must not take over is refused with the reason, and the report has both sides.
func TestSummaries(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		next ask
		cfg  trial.Config
		says string
	}{
		"as good": {next: says(facts + " More.")},
		"panics":  {next: func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { panic("boom") }, says: "it fails on recorded request 1 of 3: it panicked: boom"},
		"hangs":   {next: hangs, says: "it fails on recorded request 1 of 3: no answer within 5s: context deadline exceeded"},
		"nothing": {next: func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { return nil, nil }, says: "1 of 3: it answered nothing"}, //nolint:nilnil // that is the fault
		"loses":   {next: says("See services/billing/retry.go."), says: "it loses more: of the facts in the recorded requests (3) 50 % survive, with the policy in use 100 %; at most 5 points less are allowed"},
		"wanted":  {next: says("See services/billing/retry.go."), cfg: trial.Config{MaxLoss: 0.8}},
		"fails on one": {next: func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
			if r.ThreadID == "t2" {
				return nil, errors.New("no")
			}
			return &abi.Summary{Text: facts}, nil
		}, says: "it fails on recorded request 3 of 3: no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				report, err := trial.Summaries(t.Context(), tc.cfg, requests(3), "v1", never(t), tc.next)
				var refusal *trial.Refusal
				if (err != nil) != (tc.says != "") || err != nil && (!strings.Contains(err.Error(), tc.says) || !errors.As(err, &refusal) || refusal.Report != report) {
					t.Fatalf("error %v, want %q", err, tc.says)
				}
				if row := report.Requests[0]; row.ThreadID != "t0" || row.Messages != 1 || row.SourceTokens < 400 || !row.Old.Recorded || row.Old.Survival != 1 || row.Old.Duration != time.Second {
					t.Errorf("%+v", row)
				}
			})
		})
	}
}

// TestOtherVersion: what another version answered the policy in use is asked again, and a built-in sample, too. What the
// policy in use failed on counts for nothing.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v0", ""} {
		report, err := trial.Summaries(t.Context(), trial.Config{}, []trial.Request{request("t", version)}, "v1", says(facts), says("Nothing."))
		if err == nil || report.OldSurvival != 1 || report.NewSurvival != 0 || report.Sample != (version == "") || report.Requests[0].Old.Recorded {
			t.Errorf("%q: %+v, %v", version, report, err)
		}
	}
	failed := request("t", "v1")
	failed.Summary, failed.Err = nil, errors.New("no money")
	report, err := trial.Summaries(t.Context(), trial.Config{}, []trial.Request{failed, request("u", "v1")}, "v1", never(t),
		func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
			if r.ThreadID == "t" {
				return nil, errors.New("no money either")
			}
			return &abi.Summary{Text: facts}, nil
		})
	if err != nil || report.NewSurvival != 1 || report.Requests[0].Old.Error != "no money" || report.Requests[0].New.Error != "no money either" {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestBounds: a trial has its own time, and asks models twice at most.
func TestBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, asked := time.Now(), 0
		slow := func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
			asked++
			time.Sleep(4 * time.Second)
			return &abi.Summary{Text: facts}, nil
		}
		report, err := trial.Summaries(t.Context(), trial.Config{}, requests(8), "v1", never(t), slow)
		if err != nil || len(report.Requests) != 7 || report.Skipped != 1 || time.Since(start) != 28*time.Second {
			t.Errorf("%d requests, %d skipped in %s, %v", len(report.Requests), report.Skipped, time.Since(start), err)
		}
		tokens := int64(100)
		asked = 0
		spending := func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
			tokens += 50
			return slow(ctx, r)
		}
		old := request("other", "v0") // not asked again, since that costs money
		report, err = trial.Summaries(t.Context(), trial.Config{Model: true, Spent: func() (int64, int64) { return tokens, 3 * tokens }},
			append([]trial.Request{old}, requests(7)...), "v1", never(t), spending)
		if err != nil || asked != 2 || report.Skipped != 6 || report.ModelTokens != 100 || report.ModelMicros != 300 {
			t.Errorf("asked %d times, %+v, %v", asked, report, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = trial.Summaries(ctx, trial.Config{}, requests(2), "v1", never(t), hangs); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*trial.Refusal)) {
			t.Errorf("error %v, want the caller's", err)
		}
	})
}

// TestDecisions: an admission policy may decide otherwise, and must not fail.
func TestDecisions(t *testing.T) {
	t.Parallel()
	list := []trial.Request{{Admit: &abi.AdmitRequest{ThreadID: "t"}, Version: "v1", Decision: &abi.Decision{Allowed: true}}}
	report, err := trial.Decisions(t.Context(), trial.Config{}, list, func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
		return &abi.Decision{Reason: "not_today"}, nil
	})
	if err != nil || report.Requests[0].Old.Decision != abi.ReasonAllowed || report.Requests[0].New.Decision != "not_today" {
		t.Errorf("%+v, %v", report, err)
	}
	_, err = trial.Decisions(t.Context(), trial.Config{}, list, func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
		return nil, errors.New("trapped")
	})
	if err == nil || err.Error() != "trial: it fails on recorded request 1 of 1: trapped" {
		t.Errorf("error %v", err)
	}
}

// TestRecorder: the newest requests are kept, so many, so large and for so long.
func TestRecorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r trial.Recorder
		threads := func() (out []string) {
			for _, q := range r.Latest() {
				out = append(out, q.Summarize.ThreadID)
			}
			return out
		}
		for _, q := range requests(10) {
			r.Add(q)
		}
		if got := fmt.Sprint(threads()); got != "[t9 t8 t7 t6 t5 t4 t3 t2]" {
			t.Errorf("kept %s", got)
		}
		time.Sleep(trial.MaxAge / 2)
		large, huge := request("large", "v1"), request("huge", "v1")
		large.Bytes, huge.Bytes = trial.MaxBytes-2000, trial.MaxBytes+1
		r.Add(large)
		r.Add(huge)
		if got := fmt.Sprint(threads()); got != "[large t9]" {
			t.Errorf("kept %s", got)
		}
		time.Sleep(trial.MaxAge/2 + time.Second)
		if got := fmt.Sprint(threads()); got != "[large]" {
			t.Errorf("kept %s", got)
		}
		time.Sleep(trial.MaxAge)
		if got := threads(); got != nil {
			t.Errorf("kept %s", got)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]trial.Config{"Timeout": {Timeout: -1}, "MaxLoss": {MaxLoss: 1.1}} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}

func ExampleSummaries() {
	recorded := []trial.Request{request("t", "v1")}
	_, err := trial.Summaries(context.Background(), trial.Config{}, recorded, "v1", says(facts), says("It was about a disk."))
	fmt.Println(err)
	// Output: trial: it loses more: of the facts in the recorded requests (1) 0 % survive, with the policy in use 100 %; at most 5 points less are allowed
}
