package mailboxtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// readLog compares the log of the thread.
func (p *player) readLog(ctx context.Context) string {
	list, err := p.processes[p.process].Messages(ctx, p.in(modelThread), 1, modelSteps)
	if err != nil {
		return err.Error()
	}
	var log []string
	for i, m := range list {
		if log = append(log, m.ID); m.Seq != i+1 {
			return fmt.Sprintf("message %d has the place %d", i+1, m.Seq)
		}
	}
	if !slices.Equal(log, p.model.log) {
		return fmt.Sprintf("the log is %q, want %q", log, p.model.log)
	}
	return ""
}

// in and out translate between names of the model and of the store.
func (p *player) in(id string) string {
	if id == "" {
		return ""
	}
	return p.prefix + id
}

func (p *player) out(id string) string {
	return cmp.Or(p.aliases[id], strings.TrimPrefix(id, p.prefix))
}

// real is the id of a run.
func (p *player) real(run string) string {
	for id, name := range p.aliases {
		if name == run {
			return id
		}
	}
	return p.in(run)
}

// decoded decodes the cells of a kind.
func decoded[T any](s store.Snapshot, kind string) (out []T, err error) {
	for _, c := range s.Cells {
		var v T
		if c.Kind == kind {
			err = errors.Join(err, json.Unmarshal(c.Value, &v))
			out = append(out, v)
		}
	}
	return out, err
}

// snapshot reads all cells of the thread.
func (p *player) snapshot(ctx context.Context) (snapshot, string) {
	kinds := []string{"thread", "dispatch", "request", "run", "queue"}
	var q store.Query
	for _, kind := range kinds {
		q.Cells = append(q.Cells, store.All(kind))
	}
	s, err := p.store.Read(ctx, p.in(modelThread), q)
	if err != nil {
		return snapshot{}, err.Error()
	}
	threads, err := decoded[mailbox.Thread](s, "thread")
	dispatches, err1 := decoded[mailbox.Dispatch](s, "dispatch")
	runs, err2 := decoded[mailbox.Run](s, "run")
	queued, err3 := decoded[struct{ ID string }](s, "queue")
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return snapshot{}, err.Error()
	}
	out := snapshot{halted: p.model.halted} // which the polls compare
	for _, t := range threads {
		out.paused, out.reserved = !t.PausedAt.IsZero(), t.ReservedUntil
		out.epoch, out.fence, out.queued, out.log, out.open, out.due = t.Epoch, t.Fence, t.Queued, t.Messages, p.out(t.Open.ID), t.DueAt
		if c := t.Claim; c != nil {
			out.claim, out.until, out.stop = fmt.Sprint(p.out(c.Dispatch), " ", c.Fence), c.Until, c.Stop != ""
		}
	}
	order := []string{}
	for _, e := range queued {
		order = append(order, p.out(e.ID))
	}
	out.queue = fmt.Sprint(order)
	for _, d := range dispatches {
		id := p.out(d.ID)
		if _, ok := s.Cell("request", d.ID); !ok {
			return out, fmt.Sprintf("the request of %s is not there", id)
		}
		out.items = append(out.items, item{id, string(d.Status), d.Attempts, d.Postponed, d.Epoch, d.Seq, d.AvailableAt, d.Holding, d.End, p.out(d.RunID)})
	}
	for _, r := range runs {
		out.items = append(out.items, item{id: p.out(r.ID), status: fmt.Sprint(r.Status, " ", r.Termination, r.Wait), run: p.out(r.Dispatch)})
	}
	slices.SortFunc(out.items, item.compare)
	return out, ""
}
