package lane

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// Kinds of lanes.
const (
	Main = "main"
	Side = "side" // titles, searches: observed only
)

// Key is what a lane never shares with another one. Credential is a keyed hash. Session and Agent are empty where the
// client sends no ids.
type Key struct {
	Upstream   string        `json:"upstream"`
	Credential string        `json:"credential"`
	Protocol   wire.Protocol `json:"protocol"`
	Session    string        `json:"session,omitempty"`
	Agent      string        `json:"agent,omitempty"`
	Kind       string        `json:"kind"`
}

// Group names the lanes with a key.
func (k *Key) Group() string {
	h := wire.HashOf([]byte(strings.Join([]string{k.Upstream, k.Credential, string(k.Protocol), k.Session, k.Agent, k.Kind}, "\x00")))
	return hex.EncodeToString(h[:])
}

// State is what is kept of a lane.
type State struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	// Version counts how often it was saved.
	Version uint64 `json:"version"`
	Key     Key    `json:"key"`
	// Parent is the thread that this one was forked from, or that of the agent which started this one.
	Parent string `json:"parent,omitempty"`
	// Origin names how the conversation begins, for a client that continues it under another session id.
	Origin string `json:"origin,omitempty"`
	// Epoch counts rewrites of the prefix by the client.
	Epoch int `json:"epoch"`
	// Hashes are the items of the latest request.
	Hashes []wire.Hash `json:"hashes,omitempty"`
	// Open means that no whole answer to the latest request was delivered.
	Open bool `json:"open,omitempty"`
	// Answer has the keys of what was answered to the latest request.
	Answer []string `json:"answer,omitempty"`
	// Calls and Swaps count; CallsAtSwap is Calls at the latest swap.
	Calls       int `json:"calls"`
	Swaps       int `json:"swaps,omitempty"`
	CallsAtSwap int `json:"calls_at_swap,omitempty"`
	// Runs counts turns of the user. Run is the id of the one under way, empty between them, Latest that of the latest; Step counts its calls.
	Runs   int    `json:"runs"`
	Run    string `json:"run,omitempty"`
	Latest string `json:"latest,omitempty"`
	Step   int    `json:"step,omitempty"`
	// Kept counts the items whose messages are in the thread's log.
	Kept int `json:"kept,omitempty"`
	// Floor is how long the prompt was when a compaction was taken back, in tokens: none starts before it has grown by a good part.
	Floor int64 `json:"floor,omitempty"`

	Edits  []Edit  `json:"edits,omitempty"`
	Grafts []Graft `json:"grafts,omitempty"`
	Swap   *Swap   `json:"swap,omitempty"`
	// Hidden are tools that were added for the model, as the protocol has them, in their order.
	Hidden []json.RawMessage `json:"hidden,omitempty"`
	// Left are tools that were left out from the first request on.
	Left []string `json:"left,omitempty"`
	// Plugins are the values of plugins: see [Pack].
	Plugins []byte `json:"plugins,omitempty"`
	// Money is the account of the lane.
	Money *money.Account `json:"money,omitempty"`
	// Used is when the latest request came, Answered when the latest answer ended, and Usage what that counted.
	Used     time.Time  `json:"used"`
	Answered time.Time  `json:"answered,omitzero"`
	Usage    wire.Usage `json:"usage"`
	// TTL is how long the provider keeps the prefix.
	TTL time.Duration `json:"ttl,omitempty"`
}

// Edit is a change of an item by a plugin, which is repeated in each later request.
type Edit struct {
	Item int `json:"item"`
	// Block is that whose value is replaced, -1 where the item is one.
	Block int `json:"block"`
	// Value is the JSON of the new value. Text, if Value is empty, is added behind the item.
	Value json.RawMessage `json:"value,omitempty"`
	Text  string          `json:"text,omitempty"`
}

// Graft is an answer of which the client has not seen all calls.
type Graft struct {
	// At is the index of the client's first item of the answer, Keys are those of its items.
	At   int      `json:"at"`
	Keys []string `json:"keys"`
	// Items are what the provider gets instead of the client's.
	Items []json.RawMessage `json:"items"`
	// Results are added to the item behind them: blocks of a message of Anthropic.
	Results []json.RawMessage `json:"results,omitempty"`
}

// Swap is a compaction that was put in.
type Swap struct {
	// From and To are the client's items that it replaces, To excluded.
	From int `json:"from"`
	To   int `json:"to"`
	// Item is the JSON that replaces them.
	Item json.RawMessage `json:"item"`
	// Plain is the same without a cache marker, for requests that have no room for it.
	Plain json.RawMessage `json:"plain,omitempty"`
	// Handles name originals. Marker is the id of the thread's marker.
	Handles []string `json:"handles,omitempty"`
	Marker  string   `json:"marker,omitempty"`
	// First is the id of the first message that it replaces.
	First string `json:"first,omitempty"`
	// Tokens is an estimate of the item, Removed of what it replaces.
	Tokens  int64 `json:"tokens"`
	Removed int64 `json:"removed"`
}

// Has reports whether an item is replaced. Of no compaction none is.
func (s *Swap) Has(i int) bool { return s != nil && i >= s.From && i < s.To }

// truncate forgets what belongs to items behind the first n, but what the request has all the same at another place: an edit of an old
// message leaves the calls behind it that were hidden from the client.
func (s *State) truncate(n int, m *matcher) {
	old := s.Hashes
	var edits []Edit
	for _, e := range s.Edits {
		if e.Item >= n {
			if e.Item = m.find(old, e.Item, n); e.Item < 0 {
				continue
			}
		}
		edits = append(edits, e)
	}
	var grafts []Graft
	at := n
	for _, g := range s.Grafts {
		if g.At+len(g.Keys) > n {
			if g.At = m.findKeys(g.Keys, at); g.At < 0 {
				continue
			}
			at = g.At + len(g.Keys)
		}
		grafts = append(grafts, g)
	}
	s.Hashes = old[:min(n, len(old)):min(n, len(old))]
	s.Edits, s.Grafts = edits, grafts
	if s.Swap != nil && s.Swap.To > n {
		s.Swap = nil
	}
}

// copy returns a state that shares nothing that changes.
func (s *State) copy() *State {
	out := *s
	out.Edits = slices.Clone(s.Edits)
	out.Grafts = slices.Clone(s.Grafts)
	out.Hidden = slices.Clone(s.Hidden)
	out.Left = slices.Clone(s.Left)
	if s.Money != nil {
		out.Money = &money.Account{Ledger: s.Money.Ledger, Ratio: s.Money.Ratio, Cut: s.Money.Cut}
	}
	return &out
}
