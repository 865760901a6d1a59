package phasestest

import (
	"context"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// Answer answers an event.
type Answer func(ctx context.Context, e *abi.Event) (*abi.Reply, error)

// Scripted is a plugin that answers from a script. Its zero value subscribes to
// nothing. Desc and Script must not change once it is in use.
type Scripted struct {
	Desc abi.Description
	// Script holds an answer for each phase; a phase without one has no opinion.
	Script map[abi.Phase]Answer
	// Actions and Effects hold answers by the names in Desc.
	Actions map[string]Answer
	Effects map[string]Answer

	mu     sync.Mutex
	events []abi.Event
}

var _ phases.Plugin = (*Scripted)(nil)

// Describe returns Desc.
func (s *Scripted) Describe() abi.Description { return s.Desc }

// OnPhase notes the event and answers from the script.
func (s *Scripted) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	s.mu.Lock()
	s.events = append(s.events, *e)
	s.mu.Unlock()
	answer := s.Script[e.Phase]
	switch {
	case e.Action != nil:
		answer = s.Actions[e.Action.Key]
	case e.Effect != nil:
		answer = s.Effects[e.Effect.Key]
	}
	if answer == nil {
		return nil, nil
	}
	return answer(ctx, e)
}

// Events returns the events so far, in the order in which they came.
func (s *Scripted) Events() []abi.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Reply answers always the same.
func Reply(r abi.Reply) Answer {
	return func(context.Context, *abi.Event) (*abi.Reply, error) { return &r, nil }
}

// Fail answers with an error.
func Fail(err error) Answer {
	return func(context.Context, *abi.Event) (*abi.Reply, error) { return nil, err }
}

// Sequence answers with one after another, and the last one from then on. It is
// safe for concurrent use.
func Sequence(answers ...Answer) Answer {
	var mu sync.Mutex
	return func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
		mu.Lock()
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		mu.Unlock()
		return answer(ctx, e)
	}
}

// Recorder keeps records. Give its Record method to phases.Config.
type Recorder struct {
	mu      sync.Mutex
	records []phases.Record
}

// Record keeps one record.
func (r *Recorder) Record(rec phases.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
}

// Records returns the records so far.
func (r *Recorder) Records() []phases.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

// Of returns the records of one plugin.
func (r *Recorder) Of(plugin string) []phases.Record {
	return slices.DeleteFunc(r.Records(), func(rec phases.Record) bool { return rec.Plugin != plugin })
}
