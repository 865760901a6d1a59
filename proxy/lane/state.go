package lane

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

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
	ID     string `json:"id"`
	Group  string `json:"group"`
	Key    Key    `json:"key"`
	Parent string `json:"parent,omitempty"`
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
	// Runs counts turns of the user. Run is the id of the one under way, empty between them; Step counts its calls.
	Runs int    `json:"runs"`
	Run  string `json:"run,omitempty"`
	Step int    `json:"step,omitempty"`
	// Kept counts the messages in the log.
	Kept int `json:"kept,omitempty"`

	Edits  []Edit  `json:"edits,omitempty"`
	Grafts []Graft `json:"grafts,omitempty"`
	Swap   *Swap   `json:"swap,omitempty"`
	// Hidden are tools that were added for the model, as the protocol has them, in their order.
	Hidden []json.RawMessage `json:"hidden,omitempty"`
	// Left are tools that were left out from the first request on.
	Left []string `json:"left,omitempty"`
	// Plugins are the values of plugins that outlive a run.
	Plugins json.RawMessage `json:"plugins,omitempty"`
	// Money is the account of the lane.
	Money json.RawMessage `json:"money,omitempty"`
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
	// Items are what the provider gets in the place of the client's.
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
	// Handles name originals.
	Handles []string `json:"handles,omitempty"`
	// Tokens is an estimate of the item, Removed of what it replaces.
	Tokens  int64 `json:"tokens"`
	Removed int64 `json:"removed"`
}

// truncate forgets what lies behind the first n items.
func (s *State) truncate(n int) {
	s.Hashes = s.Hashes[:min(n, len(s.Hashes)):min(n, len(s.Hashes))]
	var edits []Edit
	for _, e := range s.Edits {
		if e.Item < n {
			edits = append(edits, e)
		}
	}
	var grafts []Graft
	for _, g := range s.Grafts {
		if g.At+len(g.Keys) <= n {
			grafts = append(grafts, g)
		}
	}
	s.Edits, s.Grafts = edits, grafts
	if s.Swap != nil && s.Swap.To > n {
		s.Swap = nil
	}
	s.Kept = min(s.Kept, n)
}

// copy returns a state that shares nothing that changes.
func (s *State) copy() *State {
	out := *s
	out.Hashes = append([]wire.Hash(nil), s.Hashes...)
	out.Edits = append([]Edit(nil), s.Edits...)
	out.Grafts = append([]Graft(nil), s.Grafts...)
	out.Hidden = append([]json.RawMessage(nil), s.Hidden...)
	return &out
}
