package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/thread"
)

// exchange is one request to a model.
type exchange struct {
	s     *Server
	r     *http.Request
	up    *upstream
	proto wire.Protocol
	id    identity

	// raw is the body as it came, nil once it was sent; req is it decoded.
	raw []byte
	req *wire.Request
	// body is what is sent instead, if acted is set.
	body  []byte
	acted bool
	// why is set when the request is only observed.
	why string
	ln  *lane.Lane
	// fetched means that the answer is that of an earlier request, which is not known.
	fetched bool
	// background means that the answer may be fetched later. Owed is what the provider has not got of what the request continues.
	background bool
	owed       lane.Stored
	// said are the messages of a request that has no lane.
	said []abi.Message
	// fresh are the items that the lane did not have before.
	fresh  []int
	change lane.Change
	items  int
	// refusal, if any, is a plugin's no.
	refusal string
	model   string
	stream  bool
	// gates means that calls of the answer are held, replaces that all of it is.
	gates          bool
	replaces       bool
	hidden         map[string]bool
	original, sent money.Sequence
	at             time.Time
	// plan plans a compaction once the answer is there.
	plan func() *plan
}

// attached is what the proxy knows of a lane in this process.
type attached struct {
	state   *phases.State
	moved   int // as lane.Lane.Moved
	ready   *summary
	working bool
	waiting time.Time // not to ask the admission policy before
	fired   int64     // attempts
	failed  int64
	started time.Time
	// override are settings of the latest request, which a retry has too.
	override *abi.InferenceOverride
	answers  []int // calls of earlier turns
}

// model forwards a request to a model.
func (s *Server) model(w http.ResponseWriter, r *http.Request, up *upstream, p wire.Protocol, counts bool) {
	ctx := r.Context()
	raw, more, err := readBody(r, wire.MaxBody)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			fail(w, p, http.StatusBadRequest, "mortise: the request's body broke off")
		}
		return
	case more:
		s.stats.unread.Add(1)
		if plugin := s.failsClosed(); plugin != "" {
			s.refuse(ctx, w, p, plugin)
			return
		}
		s.pass(w, r, up, io.MultiReader(bytes.NewReader(raw), r.Body), r.ContentLength)
		return
	}
	x := &exchange{s: s, r: r, up: up, proto: p, raw: raw, at: s.cfg.Now()}
	if !x.parse() {
		if plugin := s.failsClosed(); plugin != "" {
			s.refuse(ctx, w, p, plugin)
			return
		}
		s.pass(w, r, up, bytes.NewReader(raw), int64(len(raw)))
		return
	}
	if x.why != "" {
		if plugin := s.failsClosed(); plugin != "" && x.why == x.req.Fixed {
			s.refuseUngated(ctx, w, p, plugin, r.Method+" "+r.URL.Path+" where "+x.why, "send it without that")
			return
		}
		s.ungated(ctx, x.why, x.why)
	}
	if counts {
		x.guarded(ctx, func() { x.count(ctx) })
		if x.refusal != "" {
			fail(w, p, http.StatusForbidden, x.refusal)
			return
		}
		x.forwardOnly(ctx, w)
		return
	}
	x.forward(ctx, w)
}

// parse reads the body, and reports whether it is understood.
func (x *exchange) parse() bool {
	body, err := wire.Decode(x.r.Header.Get("Content-Encoding"), x.raw)
	if err == nil {
		x.req, err = wire.Parse(x.proto, body)
	}
	if err != nil {
		x.s.stats.unread.Add(1)
		return false
	}
	x.model, x.stream, x.items = x.req.Model, x.req.Stream, len(x.req.Items)
	x.id = identify(x.r.Header, x.req)
	background := x.req.Top["background"]
	x.background = x.proto == wire.Responses && background.Exists() && string(background.Of(body)) != "false"
	act, messages := x.s.cfg.Act, x.proto == wire.Messages
	switch {
	case !act && messages && x.id.client == claude && x.req.Integrity():
		x.why = "integrity value"
	case !act && x.up.key == "" && x.r.Header.Get("X-Api-Key") == "" && oauth(x.r.Header, messages): // else it does not count
		x.why = "OAuth credential"
	case x.req.Observe:
		x.why = x.req.Fixed
	}
	return true
}

func (x *exchange) key() *lane.Key {
	return &lane.Key{
		Upstream: x.up.base.Host + x.up.base.Path, Credential: x.s.credential(x.r.Header), Protocol: x.proto,
		Session: x.id.session, Agent: x.id.agent, Kind: x.id.kind,
	}
}

// above is the key of the thread whose agent has started the one of the request, nil if it has none.
func (x *exchange) above(key *lane.Key) *lane.Key {
	k := *key
	switch {
	case x.id.client == "claude" && x.id.agent != "", x.id.client == "codex" && x.id.parent != "":
		k.Agent = x.id.parent
	case x.id.client == "opencode" && x.id.parent != "":
		k.Session = x.id.parent
	default:
		return nil
	}
	if k == *key {
		return nil
	}
	return &k
}

// prepare finds the lane and makes what is sent.
func (x *exchange) prepare(ctx context.Context) {
	if x.id.kind == lane.Side || x.req.Text || !x.req.List.Exists() {
		x.s.stats.side.Add(1)
		x.gates, x.replaces = x.canGate(), x.canReplace()
		x.count(ctx) // a client's own compaction has the conversation, and what plugins took out of it
		return
	}
	key := x.key()
	x.ln, x.change = x.s.lanes.Find(ctx, key, x.req, false)
	sent := false
	defer func() {
		if !sent { // plugins have not seen all of it
			x.ln.Back()
		}
		x.ln.Unlock()
	}()
	x.ln.Busy++
	if above := x.above(key); x.change == lane.New && above != nil {
		x.ln.Parent = x.s.lanes.Newest(ctx, above)
	}
	a := x.attach()
	x.fresh = x.ln.Fresh
	x.original = money.SequenceOf(x.req)
	x.sent = x.original
	x.ln.Open = true
	x.ln.TTL = life(x.original, x.proto, x.model)
	switch {
	case x.why != "":
		x.s.stats.observed.Add(1)
	case x.req.Fixed != "":
		x.s.stats.opaque.Add(1)
		x.gates, x.replaces = x.canGate(), x.canReplace()
		x.opaque(ctx, a)
	default:
		x.gates, x.replaces = x.canGate(), x.canReplace()
		x.act(ctx, a)
	}
	if sent = x.refusal == "" && ctx.Err() == nil; sent {
		x.ln.Calls++
	}
}

// act fires the phases of the request and makes the body that is sent.
func (x *exchange) act(ctx context.Context, a *attached) {
	if x.s.cfg.Runtime != nil || x.s.cfg.Store != nil {
		x.messages()
	}
	turn := x.userTurn()
	dirty := x.trySwap(ctx, a, turn)
	if x.change == lane.Retry && a.override != nil {
		x.override(a.override)
	} else if x.change != lane.Retry {
		a.override = nil
		var err error
		if dirty, err = x.fire(ctx, a, turn, dirty); err != nil {
			x.refused(ctx, err)
			return
		}
	}
	dirty = x.offer() || dirty
	if x.apply(x.ln.State, &x.s.stats.acted) {
		if sent, err := wire.Parse(x.proto, x.body); err == nil {
			x.sent = money.SequenceOf(sent)
		}
	}
	if dirty {
		x.save(ctx)
	}
}

// apply makes the body that is sent, where a lane changes something.
func (x *exchange) apply(st *lane.State, counter *atomic.Int64) (changed bool) {
	splices := x.splices(x.req, st)
	if len(splices) == 0 {
		return false
	}
	x.body, x.acted = wire.Apply(x.req.Body, splices), true
	counter.Add(1)
	return true
}

// attach returns what the process knows of the lane.
func (x *exchange) attach() *attached {
	a, known := x.ln.Attached.(*attached)
	if !known {
		a = &attached{}
		x.ln.Attached = a
	}
	if a.moved != x.ln.Moved { // another process, or an operator, has changed it
		a.moved, a.state, a.ready = x.ln.Moved, nil, nil
	}
	if x.ln.Money == nil {
		x.ln.Money = &money.Account{}
	}
	x.ln.Money.Open()
	if rt := x.s.cfg.Runtime; a.state == nil && rt != nil {
		var err error
		if a.state, err = rt.Resume(lane.Unpack(x.ln.Plugins), false); err != nil {
			a.state = rt.NewState(nil)
		}
	}
	if !known && x.ln.Run != "" {
		x.record(func(r Records) error { return r.Start(thread.RunStart{At: x.s.cfg.Now(), Run: x.identity()}) })
	}
	return a
}

// record writes to the decision records, if there are any. A failure is counted, and changes nothing for the client.
func (x *exchange) record(write func(Records) error) {
	if r := x.s.cfg.Records; r != nil {
		if err := write(r); err != nil {
			x.s.stats.storeFailures.Add(1)
			x.s.cfg.Logger.WarnContext(x.s.ctx, "proxy_record_failed", "error", err)
		}
	}
}

// save keeps the lane and the messages that its thread does not have.
func (x *exchange) save(ctx context.Context) {
	if a, ok := x.ln.Attached.(*attached); ok && a.state != nil && a.moved == x.ln.Moved {
		x.ln.Plugins = lane.Pack(a.state.Store().Export())
	}
	_ = x.s.lanes.Save(ctx, x.ln) // counted and logged there
}

// release ends the request's part in its lane.
func (x *exchange) release() {
	if x.ln == nil {
		return
	}
	x.ln.Lock()
	defer x.ln.Unlock()
	x.ln.Busy--
}
