package natsstore

import (
	"strconv"

	"github.com/mortise-dev/mortise/mailbox"
)

// The fields of records by name, as the tags of their types have them: what is forgotten here is lost. TestFields compares.

func (h *headFields) add(o *object) {
	o.text("Thread", h.Thread)
	o.text("Tenant", h.Tenant)
	o.uint("Epoch", h.Epoch)
	o.uint("Fence", h.Fence)
	o.uint("Seq", h.Seq)
	o.int("Queued", int64(h.Queued))
	o.int("Messages", int64(h.Messages))
	if h.Claim != nil {
		o.field("Claim", func(o *object) { addClaim(o, h.Claim) })
	}
	addRunRef(o, "Latest", h.Latest)
	addRunRef(o, "Open", h.Open)
	o.text("Commit", h.Commit)
	o.text("Interrupt", h.Interrupt)
	o.time("ReservedUntil", h.ReservedUntil)
	o.time("DueAt", h.DueAt)
	o.int("Rank", h.Rank)
	o.time("UpdatedAt", h.UpdatedAt)
}

func addClaim(o *object, c *mailbox.Claim) {
	o.text("Dispatch", c.Dispatch)
	o.text("Token", c.Token)
	o.uint("Fence", c.Fence)
	o.text("Owner", c.Owner)
	o.time("Until", c.Until)
	o.text("Stop", c.Stop)
}

func addRunRef(o *object, name string, r mailbox.RunRef) {
	if r == (mailbox.RunRef{}) {
		return
	}
	o.field(name, func(o *object) {
		o.text("ID", r.ID)
		o.text("Agent", r.Agent)
		o.text("Status", string(r.Status))
		o.text("Wait", r.Wait)
		o.time("WaitUntil", r.WaitUntil)
	})
}

func (d *dispatchFields) add(o *object) {
	o.text("ID", d.ID)
	o.text("Thread", d.Thread)
	o.text("RunID", d.RunID)
	o.uint("Seq", d.Seq)
	o.uint("Priority", uint64(d.Priority))
	o.uint("Epoch", d.Epoch)
	o.text("Dedupe", d.Dedupe)
	o.text("Origin", d.Origin)
	o.text("Status", string(d.Status))
	o.time("AvailableAt", d.AvailableAt)
	o.int("Attempts", int64(d.Attempts))
	o.int("MaxAttempts", int64(d.MaxAttempts))
	o.text("LastError", d.LastError)
	o.bool("Holding", d.Holding)
	o.text("Token", d.Token)
	o.uint("Fence", d.Fence)
	o.text("Owner", d.Owner)
	o.text("End", string(d.End))
	o.text("Instance", d.Instance)
	o.text("RunStatus", string(d.RunStatus))
	o.text("Termination", d.Termination)
	o.text("Response", d.Response)
	o.text("RunError", d.RunError)
	o.time("CreatedAt", d.CreatedAt)
	o.time("UpdatedAt", d.UpdatedAt)
	o.time("CompletedAt", d.CompletedAt)
	o.bytes("Request", d.Request)
	o.text("Digest", d.Digest)
}

func (r *runFields) add(o *object) {
	o.text("ID", r.ID)
	o.text("Thread", r.Thread)
	o.text("Agent", r.Agent)
	o.text("Parent", r.Parent)
	o.text("Status", string(r.Status))
	o.text("Termination", r.Termination)
	o.text("Wait", r.Wait)
	o.time("WaitUntil", r.WaitUntil)
	o.text("Output", r.Output)
	o.text("Error", r.Error)
	o.text("Dispatch", r.Dispatch)
	o.text("Session", r.Session)
	o.list("Input", len(r.Input), func(i int) { o.string(r.Input[i]) })
	o.bytes("Data", r.Data)
	o.time("CreatedAt", r.CreatedAt)
	o.time("StartedAt", r.StartedAt)
	o.time("FinishedAt", r.FinishedAt)
	o.time("UpdatedAt", r.UpdatedAt)
}

func (b *birth) add(o *object) {
	o.text("Thread", b.Thread)
	o.uint("Home", b.Home)
	if b.Dispatch != nil {
		o.field("Dispatch", b.Dispatch.add)
	}
	if b.Run != nil {
		o.field("Run", b.Run.add)
	}
	if b.Load != nil {
		o.field("e", b.Load.add)
	}
	if len(b.Pages) > 0 {
		o.field("p", func(o *object) {
			for n, p := range b.Pages {
				o.field(number(n), p.add)
			}
		})
	}
}

func (p page) add(o *object) {
	addItems(o, "d", p.Dispatches)
	addItems(o, "r", p.Runs)
}

func addItems(o *object, name string, items map[string]item) {
	o.field(name, func(o *object) {
		for id, x := range items {
			o.keyed(id, func(o *object) { o.out = append(o.out, x.data...) })
		}
	})
}

func addRef(o *object, r *ref) {
	o.uint("s", r.Seq)
	o.list("p", len(r.Parts), func(i int) { o.out = append(o.out, number(r.Parts[i])...) })
}

func (b *blob) add(o *object) {
	o.bytes("d", b.Data)
	if b.Ref != nil {
		o.field("r", func(o *object) { addRef(o, b.Ref) })
	}
}

func (d *dispatchNow) add(o *object) {
	o.uint("h", d.Home)
	if d.Request != nil {
		o.field("q", d.Request.add)
	}
	o.uint("b", d.Birth)
	o.field("Fields", d.Fields.add)
}

func (r *runNow) add(o *object) {
	o.uint("h", r.Home)
	if len(r.Data.Data) > 0 || r.Data.Ref != nil {
		o.field("d", r.Data.add)
	}
	o.field("Fields", r.Fields.add)
}

func (e *entry) add(o *object) {
	o.text("i", e.ID)
	o.text("r", e.Run)
	o.uint("p", uint64(e.Priority))
	o.uint("s", e.Seq)
	o.int("a", e.Available)
	o.text("k", e.Dedupe)
	o.bool("o", e.Holding)
	o.bool("f", e.First)
	o.uint("b", e.Birth)
	o.uint("n", e.RunBirth)
}

func (q *queued) add(o *object) {
	addRef(o, &q.ref)
	o.int("n", int64(q.N))
	o.int("f", int64(q.Front))
	o.text("g", q.Gone)
}

func (c *carrier) add(o *object) {
	o.text("i", c.Host)
	o.uint("l", c.Low)
	o.uint("s", c.Span)
	o.int("g", c.Gap)
	o.int("m", int64(c.More))
}

func (d *document) add(o *object) {
	o.int("v", int64(d.Format))
	o.field("h", d.Head.add)
	d.Writes.add(o)
	o.list("q", len(d.Queue), func(i int) { o.object(d.Queue[i].add) })
	o.list("z", len(d.QueuePages), func(i int) { o.object(d.QueuePages[i].add) })
	d.addCarried(o)
	refs := func(name string, list []ref) {
		o.list(name, len(list), func(i int) { o.object(func(o *object) { addRef(o, &list[i]) }) })
	}
	refs("l", d.LogPages)
	refs("t", d.Tail)
	if d.Image != nil {
		o.field("m", d.Image.add)
	}
	if len(d.Counts) > 0 {
		o.field("c", func(o *object) {
			for status, n := range d.Counts {
				o.keyed(string(status), func(o *object) { o.out = strconv.AppendInt(o.out, int64(n), 10) })
			}
		})
	}
	o.time("o", d.Oldest)
	o.text("u", d.Cause)
	o.bool("g", d.Gone)
}

// addCarried adds what has changed, and where the rest of it is.
func (d *document) addCarried(o *object) {
	if len(d.Dispatches) > 0 {
		o.field("d", func(o *object) {
			for id, x := range d.Dispatches {
				o.keyed(id, func(o *object) { o.object(x.add) })
			}
		})
	}
	if len(d.Runs) > 0 {
		o.field("r", func(o *object) {
			for id, x := range d.Runs {
				o.keyed(id, func(o *object) { o.object(x.add) })
			}
		})
	}
	o.list("y", len(d.Carriers), func(i int) { o.object(d.Carriers[i].add) })
	if len(d.Pages) > 0 {
		o.field("p", func(o *object) {
			for n, r := range d.Pages {
				o.field(number(n), func(o *object) { addRef(o, &r) })
			}
		})
	}
	if len(d.Hosts) > 0 {
		o.field("e", func(o *object) {
			for n, host := range d.Hosts {
				o.text(number(n), host)
			}
		})
	}
}
