package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
)

// ErrDraining ends event streams and [Server.Follow] when the server shuts down.
var ErrDraining = errDraining

// Event is an event of a run, as docs/http.md describes it.
type Event struct {
	ID, Type string
	// Fields are all of its fields, those included.
	Fields map[string]json.RawMessage
}

// JSON is the event on the wire.
func (e *Event) JSON() string {
	data, _ := json.Marshal(e.Fields) //nolint:errchkjson // all of it was JSON
	return string(data)
}

// Decode reads the fields that v has.
func (e *Event) Decode(v any) error {
	data, err := json.Marshal(e.Fields)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("serve: event %s %.80s: %w", e.ID, e.Type, err)
	}
	return nil
}

// Follow calls each with the events of a run, from the first one until it has settled, over all times that it waits and over all
// processes that execute it: a client within the process. It returns what each returns, [mailbox.ErrNotFound] if there is no such
// run, and [ErrDraining] when the server shuts down; each gets a context that ends then. It counts as a stream, see [Limits].
func (s *Server) Follow(ctx context.Context, run string, each func(context.Context, Event) error) error {
	r, found, err := s.box().Run(ctx, run)
	if err != nil || !found {
		return fmt.Errorf("serve: run %.80q: %w", run, orNotFound(err))
	}
	ctx, leave, p := s.enter(ctx)
	if p != nil {
		if s.isDraining() {
			return ErrDraining
		}
		return fmt.Errorf("serve: run %.80q: %w", run, p)
	}
	defer leave()
	f := &follower{s: s, run: run, thread: r.Thread, idle: func() error { return nil }}
	f.send = func(f frame) error { return each(ctx, f.event()) }
	for err = errSlow; errors.Is(err, errSlow); { // it continues where it was
		f.caught = false
		err = f.follow(ctx)
	}
	return err
}

func orNotFound(err error) error {
	if err == nil {
		return mailbox.ErrNotFound
	}
	return err
}
