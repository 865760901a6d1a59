package mailbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// OriginInternal is the origin of requests of the program itself: an interrupt keeps them in the queue.
const OriginInternal = "internal"

// Modes of runs, as abi.RunMode has them.
const (
	modeForeground   = "foreground"
	modeScheduled    = "scheduled"
	modeResume       = "resume"
	modeInternalWake = "internal_wake"
)

// Request asks for a run.
type Request struct {
	// Thread is made when blank.
	Thread string `json:"-"`
	// Tenant owns the thread; a thread of another one is refused.
	Tenant string `json:"-"`
	// Messages and Decisions are what the run gets; one of both is required. Missing ids
	// of messages are filled in.
	Messages  []Input    `json:"messages,omitempty"`
	Decisions []Decision `json:"decisions,omitempty"`
	// Late is set when the run may have the decisions already, since it was asked while it was under way: that one of them is about a
	// call that does not wait is found when they are executed, and not before.
	Late bool `json:"late,omitempty"`
	// Run continues a run. Without it the thread's waiting run continues, and else a new one is
	// made, with the id NewRun if that is set.
	Run    string `json:"run,omitempty"`
	NewRun string `json:"-"`
	Agent  string `json:"agent,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Origin is user when empty. Adapter is the protocol by which it came.
	Origin  string `json:"origin,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	Mode    string `json:"mode,omitempty"`
	// TransportRequestID is the adapter's id of the call by which the request came, SenderID names who sent it, and ParentThreadID the
	// thread from which it was delegated. The mailbox passes them on to the run.
	TransportRequestID string `json:"transport_request_id,omitempty"`
	SenderID           string `json:"sender_id,omitempty"`
	ParentThreadID     string `json:"parent_thread_id,omitempty"`
	// DispatchIDHint is the id of the dispatch, made when empty. Another request that has had it is [ErrExists]. A request with a Key
	// has none: its id is made of the key.
	DispatchIDHint string `json:"dispatch_id_hint,omitempty"`
	// Extras are the runtime's own.
	Extras []byte `json:"extras,omitempty"`
	// Trace names the trace that the request belongs to, as mailboxtrace.Inject writes it.
	Trace map[string]string `json:"trace,omitempty"`
	// Key makes a request that comes twice one: of the same thread, which is required then, as long as the dispatch is kept.
	Key string `json:"-"`
	// Dedupe is a key that only one request of the thread may have at a time.
	Dedupe string `json:"-"`
	// Priority is 0 by default, from -128, the first, to 127.
	Priority int8 `json:"-"`
	// At is when it is due, now when zero.
	At          time.Time `json:"-"`
	MaxAttempts int       `json:"-"`
	// Timeout is how long one execution may take; 0 is no limit. One that takes longer is asked to end, with [ErrTimeout], and then counts as
	// failed: the next attempt continues from what the run has committed. A result to which it comes all the same counts, since nothing
	// that was done is to be done again.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Decision is one about a call that waits.
type Decision struct {
	Call string `json:"call"`
	Data []byte `json:"data,omitempty"`
}

// Input is a message that a request brings.
type Input struct {
	// ID is unique in the thread.
	ID   string `json:"id"`
	Data []byte `json:"data,omitempty"`
}

// decodeRequest reads the payload of a dispatch of a thread, or of a command.
func decodeRequest(payload []byte, t *Thread) (Request, error) {
	r := Request{Thread: t.ID, Tenant: t.Tenant}
	if err := json.Unmarshal(payload, &r); err != nil {
		return Request{}, fmt.Errorf("mailbox: request: %w: %w", ErrPermanent, err)
	}
	return r, nil
}

// complete checks a request and fills in what is missing.
func (r Request) complete(newID func() string) (Request, error) {
	r.Thread = strings.TrimSpace(r.Thread)
	switch {
	case r.Thread == "" && r.Key != "":
		return r, fmt.Errorf("mailbox: request with key %.80q: %w: a key counts within a thread, and a new one would be made each time; name the thread", r.Key, ErrInvalid)
	case r.Thread == "":
		r.Thread = newID()
	}
	if err := r.checkNames(); err != nil {
		return r, fmt.Errorf("mailbox: request: %w", err)
	}
	if r.Timeout < 0 {
		return r, fmt.Errorf("mailbox: request: %w: its timeout is negative; zero is none", ErrInvalid)
	}
	if len(r.Messages) == 0 && len(r.Decisions) == 0 {
		return r, fmt.Errorf("mailbox: request: %w: at least one message is required", ErrInvalid)
	}
	if r.Origin == "" {
		r.Origin = "user"
	}
	r.Messages = slices.Clone(r.Messages)
	seen := map[string]bool{}
	for i := range r.Messages {
		if r.Messages[i].ID == "" {
			r.Messages[i].ID = r.messageID(i, newID)
		}
		if err := checkID("message id", r.Messages[i].ID); err != nil {
			return r, fmt.Errorf("mailbox: request: %w", err)
		}
		if id := r.Messages[i].ID; seen[id] {
			return r, fmt.Errorf("mailbox: request: %w: two messages have the id %.80q; ids are unique in a thread", ErrInvalid, id)
		}
		seen[r.Messages[i].ID] = true
	}
	return r, nil
}

// checkNames checks the ids that come from outside and that the mailbox only passes on.
func (r Request) checkNames() error {
	if r.Key != "" && r.DispatchIDHint != "" {
		return fmt.Errorf("%w: it has the dispatch id hint %.80q and a key, of which that id is made; leave one of them out", ErrInvalid, r.DispatchIDHint)
	}
	return cmp.Or(
		checkID("transport request id", r.TransportRequestID), checkID("sender id", r.SenderID),
		checkID("parent thread id", r.ParentThreadID), checkID("dispatch id hint", r.DispatchIDHint),
	)
}

// messageID is the same for the same request under an idempotency key.
func (r Request) messageID(i int, newID func() string) string {
	if r.Key == "" {
		return newID()
	}
	return derived(r.Thread, r.Key, fmt.Sprint("message ", i))
}

// mode is why the run starts.
func (r Request) mode(foreground bool) string {
	switch {
	case r.Mode != "":
		return r.Mode
	case len(r.Decisions) > 0 || r.Run != "":
		return modeResume
	case r.Origin == OriginInternal:
		return modeInternalWake
	case foreground:
		return modeForeground
	default:
		return modeScheduled
	}
}

// entry is what is queued for a request.
func (m *Mailbox) entry(r Request, foreground bool) (entry, error) {
	same := r
	same.Trace, same.TransportRequestID = nil, "" // another try of the same request has others
	asked, err := m.encode(same)
	if err != nil {
		return entry{}, err
	}
	r.Mode = r.mode(foreground)
	payload, err := m.encode(r)
	if err != nil {
		return entry{}, err
	}
	e := entry{Request: r, ID: r.DispatchIDHint, Payload: payload, Unread: r.Run == "" && !r.decides() && m.Health() == nil}
	if e.MaxAttempts <= 0 {
		e.MaxAttempts = m.cfg.Retry.Attempts
	}
	if e.NewRun == "" {
		e.NewRun, e.OwnRun = m.cfg.NewID(), m.ownIDs
	}
	if r.Key != "" {
		e.ID = derived(r.Thread, r.Key, "dispatch")
	}
	if e.ID != "" {
		sum := sha256.Sum256(asked) // whether it comes in the foreground or not
		e.Digest = hex.EncodeToString(sum[:16])
	} else {
		e.ID, e.OwnID = m.cfg.NewID(), m.ownIDs
	}
	return e, wrap("request for thread", r.Thread, e.Validate())
}

// inputs are the ids of the messages that a request brings.
func (r *Request) inputs() (ids []string) {
	for i := range r.Messages {
		ids = append(ids, r.Messages[i].ID)
	}
	return ids
}

// derived makes an id of an idempotency key. The key need not be kept, then.
func derived(thread, key, what string) string {
	sum := sha256.Sum256([]byte(thread + "\x00" + key + "\x00" + what))
	return "k-" + hex.EncodeToString(sum[:16])
}

// encode makes the payload of a request, unless it is too large.
func (m *Mailbox) encode(r Request) ([]byte, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("mailbox: request: %w: %w", ErrInvalid, err)
	}
	if err := m.fitsRequest(len(payload)); err != nil {
		return nil, fmt.Errorf("mailbox: request: %w", err)
	}
	return payload, nil
}
