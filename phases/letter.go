package phases

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// DeadLetter is an action or an effect that was not executed.
type DeadLetter struct {
	ID int64
	// Phase is that of the action, or empty for an effect.
	Phase   abi.Phase
	Key     string
	By      string
	Payload any
	// Err is why, bounded and in one line.
	Err string
}

// DeadLetters returns the failures that are kept for the thread, oldest first, and
// how many older ones were forgotten because Limits.DeadLetters is lower.
func (s *State) DeadLetters() (letters []DeadLetter, forgotten int64) {
	now := s.store.Snapshot()
	v, _ := now.Read(deadName)
	m, _ := v.(map[string]any)
	forgotten, _ = m["forgotten"].(int64)
	return lettersOf(now), forgotten
}

func lettersOf(s state.Snapshot) []DeadLetter {
	v, _ := s.Read(deadName)
	m, _ := v.(map[string]any)
	list, _ := m["letters"].([]any)
	out := make([]DeadLetter, 0, len(list))
	for _, e := range list {
		a := decodeAction(e)
		l := DeadLetter{ID: a.ID, Phase: a.Phase, Key: a.Key, By: a.By, Payload: a.Payload}
		if fields, ok := e.(map[string]any); ok {
			l.Err, _ = fields["error"].(string)
		}
		out = append(out, l)
	}
	return out
}

// letter is the value of a dead letter.
func letter(a *abi.Action, cause string) []any {
	m := encodeAction(a)
	m["error"] = cause
	return []any{m}
}

// Replay takes a dead letter back: an action waits for its phase again, an effect
// is executed now. What fails again is a dead letter again, with a new id.
func (r *Runtime) Replay(ctx context.Context, s *State, id int64) (Report, error) {
	l, err := r.drop(ctx, s, id)
	if err != nil {
		return Report{}, err
	}
	c := Command{By: l.By}
	if l.Phase == "" {
		c.Effects = []abi.Effect{{Type: abi.EffectCustom, Key: l.Key, Payload: l.Payload}}
	} else {
		c.Actions = []abi.Action{{Phase: l.Phase, Key: l.Key, Payload: l.Payload}}
	}
	report, err := r.Submit(ctx, s, c)
	if err != nil {
		// It could not be taken back, so it stays what it was.
		a := abi.Action{ID: l.ID, Phase: l.Phase, Key: l.Key, By: l.By, Payload: l.Payload}
		err = errors.Join(err, r.bury(context.WithoutCancel(ctx), s, letter(&a, l.Err)))
	}
	return report, err
}

// Discard forgets a dead letter.
func (r *Runtime) Discard(ctx context.Context, s *State, id int64) error {
	_, err := r.drop(ctx, s, id)
	return err
}

func (r *Runtime) drop(ctx context.Context, s *State, id int64) (DeadLetter, error) {
	// Of two who take the same letter, one finds it gone.
	s.letters.Lock()
	defer s.letters.Unlock()
	letters := lettersOf(s.store.Snapshot())
	at := slices.IndexFunc(letters, func(l DeadLetter) bool { return l.ID == id })
	if at < 0 {
		return DeadLetter{}, fmt.Errorf("phases: there is no dead letter %d", id)
	}
	_, err := s.store.Apply(ctx, state.Batch{Updates: []state.Update{{Key: deadName, Op: opDrop, Value: []any{id}}}})
	if err != nil {
		return DeadLetter{}, fmt.Errorf("phases: dead letter %d: %w", id, err)
	}
	return letters[at], nil
}

// bury keeps dead letters.
func (r *Runtime) bury(ctx context.Context, s *State, letters []any) error {
	if len(letters) == 0 {
		return nil
	}
	_, err := s.store.Apply(ctx, state.Batch{Updates: []state.Update{{Key: deadName, Op: opPush, Value: letters}}})
	if err != nil {
		return fmt.Errorf("phases: dead letters: %w", err)
	}
	return nil
}
