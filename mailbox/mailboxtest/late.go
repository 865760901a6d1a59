package mailboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func lateCases() []testCase {
	return []testCase{
		{"decision_that_comes_twice_answers_once", decidedTwice},
		{"decision_for_a_wait_that_is_over_leaves_the_present_one", decidedLate},
		{"decision_for_a_wait_not_yet_reached_is_refused", decidedEarly},
		{"decision_of_a_process_that_cannot_tell_is_recorded", decidedBlindly},
		{"decisions_of_two_processes_answer_once", decidedByTwo},
		{"decisions_are_told_apart_after_a_restart", decidedAfterRestart},
	}
}

// quiz is a runtime whose runs wait for decisions about these calls, one after the other, and then come to the answers. All it knows
// is in the image.
type quiz struct{ calls []string }

func threeCalls() *quiz { return &quiz{calls: []string{"a", "b", "c"}} }

func (s *quiz) read(image []byte) (answers []string, err error) {
	if len(image) > 0 {
		err = json.Unmarshal(image, &answers)
	}
	return answers, err
}

// waits is the call that waits, after so many answers.
func (s *quiz) waits(answers []string) string { return append(s.calls, "unknown")[len(answers)] }

func (s *quiz) Judge(_ string, image []byte, list []mailbox.Decision) ([]mailbox.Decision, error) {
	answers, err := s.read(image)
	for _, d := range list {
		if err == nil && d.Call != s.waits(answers) {
			err = fmt.Errorf("quiz: %w: call %q does not wait", mailbox.ErrRefused, d.Call)
		}
	}
	return list, err
}

func (s *quiz) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	now, image, err := j.Load(ctx)
	if err != nil {
		return mailbox.Result{}, err
	}
	answers, err := s.read(image)
	if err != nil {
		return mailbox.Result{}, err
	}
	_, refusal := s.Judge(j.Run.ID, image, j.Request.Decisions)
	if refusal == nil {
		for _, d := range j.Request.Decisions {
			answers = append(answers, d.Call+"="+string(d.Data))
		}
		image, err := json.Marshal(answers)
		if err != nil {
			return mailbox.Result{}, err
		}
		if err := j.Commit(ctx, mailbox.Commit{ID: j.Dispatch.Instance, From: now.Messages, Image: image}); err != nil {
			return mailbox.Result{}, err
		}
	}
	if len(answers) == len(s.calls) {
		return mailbox.Result{Termination: "natural", Response: strings.Join(answers, " ")}, refusal
	}
	return mailbox.Result{Status: mailbox.RunWaiting, Wait: "tool_permission", WaitUntil: j.Run.CreatedAt.Add(time.Hour)}, refusal
}

// asked is a run that waits for a decision about "a", of a process that executes.
func (w *world) asked() (*mailbox.Mailbox, mailbox.Submission) {
	w.t.Helper()
	m := w.started(mailbox.Config{Runtime: threeCalls()})
	sub := w.submit(m, "t")
	w.await(m, sub.Dispatch, mailbox.Acked)
	return m, sub
}

// answer decides about a call, and waits until that was executed.
func (w *world) answer(m *mailbox.Mailbox, run, call, with string) {
	w.t.Helper()
	ok, err := m.Decide(w.ctx(), run, mailbox.Decision{Call: call, Data: []byte(with)})
	if err != nil || !ok {
		w.t.Errorf("decision about %q: taken %v, %v", call, ok, err)
	}
	w.settledAll(m)
}

// settledAll waits until all dispatches of the thread have been acknowledged.
func (w *world) settledAll(m *mailbox.Mailbox) (list []mailbox.Dispatch) {
	w.t.Helper()
	list, err := w.mail.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: "t", Limit: 100})
	must(w.t, err)
	for i := range list {
		list[i] = w.await(m, list[i].ID, mailbox.Acked)
	}
	return list
}

// refuses holds that the sender of a decision gets the refusal.
func (w *world) refuses(m *mailbox.Mailbox, run, call string) {
	w.t.Helper()
	if ok, err := m.Decide(w.ctx(), run, mailbox.Decision{Call: call, Data: []byte("late")}); ok || !errors.Is(err, mailbox.ErrRefused) {
		w.t.Errorf("decision about %q: taken %v, %v", call, ok, err)
	}
}

// comesTo holds that the run waits as it should, and decides about the rest.
func (w *world) comesTo(m *mailbox.Mailbox, run string, rest []string, want string) {
	w.t.Helper()
	r := w.run(run)
	equal(w.t, "the run", string(r.Status)+" "+r.Wait+" "+r.Termination, "waiting tool_permission ")
	equal(w.t, "end of its wait", r.WaitUntil, r.CreatedAt.Add(time.Hour))
	for _, call := range rest {
		w.answer(m, run, call, "yes")
	}
	r = w.run(run)
	equal(w.t, "the run", string(r.Status)+" "+r.Termination, "done natural")
	equal(w.t, "what it came to", r.Output, want)
}

// refused are the dispatches that have the refusal.
func refused(list []mailbox.Dispatch) []mailbox.Dispatch {
	return slices.DeleteFunc(list, func(d mailbox.Dispatch) bool { return !strings.Contains(d.LastError, mailbox.ErrRefused.Error()) })
}

func decidedTwice(w *world) {
	m, sub := w.asked()
	must(w.t, m.Stop(w.ctx()))
	for range 2 {
		ok, err := m.Decide(w.ctx(), sub.Run, mailbox.Decision{Call: "a", Data: []byte("yes")})
		must(w.t, err)
		equal(w.t, "kept", ok, true)
	}
	must(w.t, m.Start(w.ctx()))
	equal(w.t, "refused", len(refused(w.settledAll(m))), 1)
	w.comesTo(m, sub.Run, []string{"b", "c"}, "a=yes b=yes c=yes")
}

func decidedLate(w *world) {
	m, sub := w.asked()
	w.answer(m, sub.Run, "a", "yes")
	w.answer(m, sub.Run, "b", "yes")
	w.refuses(m, sub.Run, "a")
	w.refuses(m, sub.Run, "b")
	w.comesTo(m, sub.Run, []string{"c"}, "a=yes b=yes c=yes")
	ok, err := m.Decide(w.ctx(), sub.Run, mailbox.Decision{Call: "c", Data: []byte("late")})
	if ok || err != nil {
		w.t.Errorf("decision for a run that has ended: taken %v, %v", ok, err)
	}
}

func decidedEarly(w *world) {
	m, sub := w.asked()
	w.refuses(m, sub.Run, "b")
	w.refuses(m, sub.Run, "never")
	w.comesTo(m, sub.Run, []string{"a", "b", "c"}, "a=yes b=yes c=yes")
}

func decidedBlindly(w *world) {
	m, sub := w.asked()
	client := w.box(mailbox.Config{Store: w.store, Runtime: done{}})
	for _, call := range []string{"b", "a", "a", "never"} {
		ok, err := client.Decide(w.ctx(), sub.Run, mailbox.Decision{Call: call, Data: []byte("yes")})
		must(w.t, err)
		equal(w.t, "kept", ok, true)
		w.settledAll(m)
	}
	list := refused(w.settledAll(m))
	equal(w.t, "refused", len(list), 3)
	for _, d := range list {
		equal(w.t, "where the run stood", d.RunStatus, mailbox.RunWaiting)
		equal(w.t, "attempts", d.Attempts, 0)
	}
	w.comesTo(m, sub.Run, []string{"b", "c"}, "a=yes b=yes c=yes")
}

func decidedByTwo(w *world) {
	m, sub := w.asked()
	other := w.started(mailbox.Config{Runtime: threeCalls()})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			box := []*mailbox.Mailbox{m, other}[i%2]
			_, err := box.Decide(w.ctx(), sub.Run, mailbox.Decision{Call: "a", Data: []byte("yes")})
			if err != nil && !errors.Is(err, mailbox.ErrRefused) {
				w.t.Error(err)
			}
		})
	}
	wg.Wait()
	list := w.settledAll(m)
	equal(w.t, "answers", len(list)-1-len(refused(slices.Clone(list))), 1)
	w.comesTo(other, sub.Run, []string{"b", "c"}, "a=yes b=yes c=yes")
}

func decidedAfterRestart(w *world) {
	m, sub := w.asked()
	w.answer(m, sub.Run, "a", "yes")
	must(w.t, m.Stop(w.ctx()))
	next := w.started(mailbox.Config{Runtime: threeCalls()})
	w.refuses(next, sub.Run, "a")
	w.refuses(next, sub.Run, "c")
	w.comesTo(next, sub.Run, []string{"b", "c"}, "a=yes b=yes c=yes")
}
