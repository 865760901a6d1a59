package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// Config bounds a trial. Zero fields take defaults.
type Config struct {
	// Timeout is how long the trial may take in all, 30 s by default, and two minutes with Model. A policy may take
	// four times as long for a request as the one before did, but at least 5 s, or 30 s with Model, or half of Timeout
	// if that is less. Requests for which less time is left are not tried.
	Timeout time.Duration
	// MaxLoss is how far the mean survival may be below that of the policy in use, from 0 to 1. Default 0.05; with 1
	// a loss is reported and refuses nothing.
	MaxLoss float64
	// Model means that the policies ask a model, which costs money: at most two requests are tried, and the answers
	// of the policy in use are those that were recorded. What the module's budgets allow for a call bounds each.
	Model bool
	// Spent returns what questions to a model have come to so far; nil is nothing.
	Spent func() (tokens, micros int64)
}

// Defaults.
const (
	defaultTimeout  = 30 * time.Second
	defaultWithAsks = 2 * time.Minute
	leastTime       = 5 * time.Second
	leastWithAsks   = 30 * time.Second
	patience        = 4
	maxAsking       = 2 // requests of policies that ask a model
	defaultMaxLoss  = 0.05
)

// Validate reports what is wrong with a config.
func (c Config) Validate() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("trial: Config.Timeout is %s, must not be negative", c.Timeout)
	case !(c.MaxLoss >= 0 && c.MaxLoss <= 1):
		return fmt.Errorf("trial: Config.MaxLoss is %v, must be from 0 to 1", c.MaxLoss)
	}
	return nil
}

// run is a trial under way.
type run struct {
	cfg    Config
	least  time.Duration
	until  time.Time
	report *Report
}

func begin(cfg Config, requests []Request) (*run, []Request) {
	r := &run{cfg: cfg, least: leastTime}
	timeout := cmp.Or(cfg.Timeout, defaultTimeout)
	tried := requests
	if cfg.Model {
		r.least, timeout = leastWithAsks, cmp.Or(cfg.Timeout, defaultWithAsks)
		tried = requests[:min(len(requests), maxAsking)]
	}
	r.cfg.MaxLoss = cmp.Or(cfg.MaxLoss, defaultMaxLoss)
	r.until, r.least = time.Now().Add(timeout), min(r.least, timeout/2)
	r.report = &Report{Requests: []Compared{}, MaxLoss: r.cfg.MaxLoss, Skipped: len(requests) - len(tried)}
	return r, tried
}

// allowed is how long a request may take that took so long before, or 0 when so much time is not left. The first one
// may take all of it.
func (r *run) allowed(before time.Duration) time.Duration {
	want, left := max(patience*before, r.least), time.Until(r.until)
	if len(r.report.Requests) > 0 && want > left {
		return 0
	}
	return min(want, left)
}

// spending counts what models are paid until the function that it returns is called.
func (r *run) spending() (done func()) {
	if r.cfg.Spent == nil {
		return func() {}
	}
	tokens, micros := r.cfg.Spent()
	return func() {
		t, m := r.cfg.Spent()
		r.report.ModelTokens, r.report.ModelMicros = t-tokens, m-micros
	}
}

func (r *run) refuse(reason string, err error) error {
	return &Refusal{Report: r.report, Reason: reason, Err: err}
}

// Ask asks a policy. Its error is also that of an answer that cannot be used.
type Ask[Q, A any] func(ctx context.Context, request *Q) (*A, error)

// timed asks a policy and takes the time. One that panics has failed.
func timed[Q, A any](ctx context.Context, within time.Duration, ask Ask[Q, A], q *Q) (a *A, took time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	start := time.Now()
	defer func() {
		took = time.Since(start)
		if p := recover(); p != nil {
			a, err = nil, fmt.Errorf("it panicked: %v", p)
		}
	}()
	a, err = ask(ctx, q)
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case err == nil && a == nil:
		err = errors.New("it answered nothing")
	}
	return a, took, err
}

// Summaries tries a summarizer on requests, newest first, and compares what survives with the summaries of the
// one in use, of the given version. It is a [*Refusal] when the new one fails on a request that the old one
// answered, or loses more by [Config.MaxLoss]. The report is there also then.
func Summaries(ctx context.Context, cfg Config, requests []Request, version string, old, next Ask[abi.SummarizeRequest, abi.Summary]) (*Report, error) {
	r, requests := begin(cfg, requests)
	defer r.spending()()
	scorer, both := compaction.NewScorer(), 0.0
	for i, q := range requests {
		r.report.Sample = q.Version == ""
		recorded := q.Version == version || cfg.Model && q.Version != ""
		if within := r.allowed(0); !recorded && within > 0 {
			q.Summary, q.Took, q.Err = timed(ctx, within, old, q.Summarize)
		}
		within := r.allowed(q.Took)
		if within == 0 {
			r.report.Skipped += len(requests) - i
			break
		}
		summary, took, err := timed(ctx, within, next, q.Summarize)
		row := Compared{ThreadID: q.Summarize.ThreadID, Messages: len(q.Summarize.Messages), SourceTokens: compaction.Estimate(q.Summarize.Messages)}
		row.Old.fill(scorer, q.Summarize, q.Summary, q.Took, q.Err)
		row.New.fill(scorer, q.Summarize, summary, took, err)
		row.Old.Recorded = recorded
		r.report.Requests = append(r.report.Requests, row)
		switch {
		case err != nil && ctx.Err() != nil:
			return r.report, fmt.Errorf("trial: %w", ctx.Err())
		case err != nil && q.Err == nil:
			return r.report, r.refuse("it fails on "+r.which(i+1, len(requests)), err)
		case err == nil && q.Err == nil && q.Summary.Declined == "" && summary.Declined == "":
			both++
			r.report.OldSurvival += row.Old.Survival
			r.report.NewSurvival += row.New.Survival
		}
	}
	return r.report, r.loss(both)
}

// loss compares what survived of so many requests.
func (r *run) loss(requests float64) error {
	if requests == 0 {
		return nil
	}
	r.report.OldSurvival /= requests
	r.report.NewSurvival /= requests
	if r.report.OldSurvival-r.report.NewSurvival <= r.cfg.MaxLoss {
		return nil
	}
	on := fmt.Sprintf("the recorded requests (%.0f)", requests)
	if r.report.Sample {
		on = r.which(1, 1)
	}
	return r.refuse(fmt.Sprintf("it loses more: of the facts in %s %.0f %% survive, with the policy in use %.0f %%; at most %.0f points less are allowed",
		on, 100*r.report.NewSurvival, 100*r.report.OldSurvival, 100*r.cfg.MaxLoss), nil)
}

// which names a request.
func (r *run) which(i, n int) string {
	if r.report.Sample {
		return "the built-in sample"
	}
	return fmt.Sprintf("recorded request %d of %d", i, n)
}

func (o *Outcome) fill(scorer *compaction.Scorer, q *abi.SummarizeRequest, s *abi.Summary, took time.Duration, err error) {
	o.Duration = took
	if err != nil {
		o.Error = clip(err.Error())
		return
	}
	if s.Declined != "" {
		o.Error = clip("declined: " + s.Declined)
		return
	}
	text := compaction.Remains(q, s)
	o.SummaryTokens = compaction.Estimate([]abi.Message{{Content: []abi.ContentBlock{abi.Text(text)}}})
	o.Survival = scorer.Score(q.Messages, q.PreviousSummary, text).Overall
}

// maxText bounds an error in a report, in bytes.
const maxText = 500

func clip(s string) string { return s[:min(len(s), maxText)] }

// Decisions tries an admission policy on requests, newest first. It is a [*Refusal] when the new one fails on a
// request that the old one answered. Other decisions than the old one's are reported, and refuse nothing: that a
// policy decides otherwise is what it is replaced for.
func Decisions(ctx context.Context, cfg Config, requests []Request, next Ask[abi.AdmitRequest, abi.Decision]) (*Report, error) {
	r, requests := begin(cfg, requests)
	defer r.spending()()
	for i, q := range requests {
		within := r.allowed(q.Took)
		if within == 0 {
			r.report.Skipped += len(requests) - i
			break
		}
		row := Compared{ThreadID: q.Admit.ThreadID, Old: Outcome{Recorded: true}}
		row.Old.decided(q.Decision, q.Took, q.Err)
		d, took, err := timed(ctx, within, next, q.Admit)
		row.New.decided(d, took, err)
		r.report.Requests = append(r.report.Requests, row)
		switch {
		case err != nil && ctx.Err() != nil:
			return r.report, fmt.Errorf("trial: %w", ctx.Err())
		case err != nil && q.Err == nil:
			return r.report, r.refuse("it fails on "+r.which(i+1, len(requests)), err)
		}
	}
	return r.report, nil
}

func (o *Outcome) decided(d *abi.Decision, took time.Duration, err error) {
	o.Duration = took
	if err != nil {
		o.Error = clip(err.Error())
		return
	}
	o.Decision = d.Reason
	if d.Allowed {
		o.Decision = abi.ReasonAllowed
	}
}
