package mailboxtest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Whole is the store with those of its optional abilities that it has, which fail on demand as well: "pull", "signal_ack" and
// "signal_nack", "listen" and "deliver", "append_events", "read_events" and "purge_events".
func (f *Faulty) Whole() mailbox.Store {
	signals, s := f.Store.(mailbox.Signals)
	live, l := f.Store.(mailbox.Live)
	events, e := f.Store.(mailbox.EventLog)
	fs, fl, fe := faultySignals{signals, f}, faultyLive{live, f}, faultyEvents{events, f}
	switch {
	case s && l && e:
		return struct {
			*Faulty
			faultySignals
			faultyLive
			faultyEvents
		}{f, fs, fl, fe}
	case l && e:
		return struct {
			*Faulty
			faultyLive
			faultyEvents
		}{f, fl, fe}
	case s && e:
		return struct {
			*Faulty
			faultySignals
			faultyEvents
		}{f, fs, fe}
	case s && l:
		return struct {
			*Faulty
			faultySignals
			faultyLive
		}{f, fs, fl}
	case s:
		return struct {
			*Faulty
			faultySignals
		}{f, fs}
	case l:
		return struct {
			*Faulty
			faultyLive
		}{f, fl}
	case e:
		return struct {
			*Faulty
			faultyEvents
		}{f, fe}
	default:
		return f
	}
}

type faultySignals struct {
	signals mailbox.Signals
	f       *Faulty
}

// Pull implements mailbox.Signals.
func (x faultySignals) Pull(ctx context.Context, limit int, wait time.Duration) (list []mailbox.Signal, err error) {
	err = x.f.do(ctx, "pull", func() (err error) {
		list, err = x.signals.Pull(ctx, limit, wait)
		return err
	})
	for i := range list {
		list[i].Receipt = faultyReceipt{list[i].Receipt, x.f}
	}
	return list, err
}

type faultyReceipt struct {
	receipt mailbox.Receipt
	f       *Faulty
}

// Ack implements mailbox.Receipt.
func (x faultyReceipt) Ack(ctx context.Context) error {
	return x.f.do(ctx, "signal_ack", func() error { return x.receipt.Ack(ctx) })
}

// Nack implements mailbox.Receipt.
func (x faultyReceipt) Nack(ctx context.Context, delay time.Duration) error {
	return x.f.do(ctx, "signal_nack", func() error { return x.receipt.Nack(ctx, delay) })
}

type faultyLive struct {
	live mailbox.Live
	f    *Faulty
}

// Deliver implements mailbox.Live.
func (x faultyLive) Deliver(ctx context.Context, t mailbox.Target, c mailbox.Command) (ok bool, err error) {
	err = x.f.do(ctx, "deliver", func() (err error) {
		ok, err = x.live.Deliver(ctx, t, c)
		return err
	})
	return ok && err == nil, err
}

// Listen implements mailbox.Live. One that fails is stopped.
func (x faultyLive) Listen(ctx context.Context, t mailbox.Target, accept func(context.Context, mailbox.Command) bool) (stop func(), err error) {
	err = x.f.do(ctx, "listen", func() (err error) {
		stop, err = x.live.Listen(ctx, t, accept)
		return err
	})
	if err != nil && stop != nil {
		stop()
	}
	return stop, err
}

type faultyEvents struct {
	events mailbox.EventLog
	f      *Faulty
}

// AppendEvents implements mailbox.EventLog.
func (x faultyEvents) AppendEvents(ctx context.Context, list ...mailbox.EventBatch) (refused []string, err error) {
	err = x.f.do(ctx, "append_events", func() (err error) {
		refused, err = x.events.AppendEvents(ctx, list...)
		return err
	})
	return refused, err
}

// ReadEvents implements mailbox.EventLog.
func (x faultyEvents) ReadEvents(ctx context.Context, dispatch string, after uint64, limit int, wait time.Duration) (list []mailbox.EventBatch, err error) {
	err = x.f.do(ctx, "read_events", func() (err error) {
		list, err = x.events.ReadEvents(ctx, dispatch, after, limit, wait)
		return err
	})
	return list, err
}

// PurgeEvents implements mailbox.EventLog.
func (x faultyEvents) PurgeEvents(ctx context.Context, before time.Time) error {
	return x.f.do(ctx, "purge_events", func() error { return x.events.PurgeEvents(ctx, before) })
}

func (x faultyEvents) DropEvents(ctx context.Context, dispatches ...string) error {
	return x.f.do(ctx, "drop_events", func() error { return x.events.DropEvents(ctx, dispatches...) })
}
