package mailbox

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Dispatch returns a dispatch without its request, or false.
func (q *Queue) Dispatch(ctx context.Context, id string) (d Dispatch, ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpLoadDispatch, Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, KindDispatch, id)
	if err != nil || !found {
		return Dispatch{}, false, err
	}
	s, err := q.load(ctx, thread, Need{Dispatches: []string{id}})
	d, ok = s.Dispatches[id]
	return d, ok, err
}

// Run returns a run, or false.
func (q *Queue) Run(ctx context.Context, id string) (Run, bool, error) {
	thread, found, err := q.find(ctx, KindRun, id)
	if err != nil || !found {
		return Run{}, false, err
	}
	s, err := q.load(ctx, thread, Need{Runs: []string{id}})
	r, ok := s.Runs[id]
	return r, ok, err
}

// Head returns what a thread comes down to. One that was never used has an empty Head.
func (q *Queue) Head(ctx context.Context, thread string) (Head, error) {
	ctx, end := q.begin(ctx, Operation{Name: OpLoadThread, Thread: thread})
	s, err := q.load(ctx, thread, Need{})
	end(false, err)
	return s.Head, err
}

// Dispatches lists dispatches without their requests.
func (q *Queue) Dispatches(ctx context.Context, query DispatchQuery) ([]Dispatch, error) {
	list, err := q.cfg.Store.Dispatches(ctx, query)
	return list, wrap("dispatches of thread", query.Thread, err)
}

func (q *Queue) load(ctx context.Context, thread string, need Need) (State, error) {
	s, err := q.cfg.Store.Load(ctx, thread, need)
	return s, wrap("thread", thread, err)
}

func (q *Queue) find(ctx context.Context, kind Kind, id string) (string, bool, error) {
	if id == "" || !validID(id) {
		return "", false, nil // nothing was ever kept under it
	}
	thread, found, err := q.cfg.Store.Find(ctx, kind, id)
	return thread, found, wrap(string(kind), id, err)
}

func checkID(name, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: the %s must be UTF-8 without NUL, at most %d bytes", ErrInvalid, name, maxID)
	}
	return nil
}

func validID(id string) bool {
	return len(id) <= maxID && utf8.ValidString(id) && !strings.ContainsRune(id, 0)
}
