package lane

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store"
)

// Stored is what is known of an answer, or a conversation, that the provider keeps and others continue by its id.
type Stored struct {
	// ID, if any, is the answer that is continued instead: the provider was asked again, and the client has the id of the first answer.
	ID string `json:"id,omitempty"`
	// Items are what the provider wants and the client does not have: results of calls that were removed, and calls that plugins made.
	Items []json.RawMessage `json:"results,omitempty"`
	// Unpaid means that its usage was not counted yet.
	Unpaid bool `json:"unpaid,omitempty"`
}

const (
	kindStored = "proxy.stored"
	// maxStored is how many are in memory where there is no store.
	maxStored = 4096
)

// Stored reads what is known of an answer or conversation, and writes what change makes of it where that returns true. A key has the
// upstream and the credential.
func (s *Set) Stored(ctx context.Context, k *Key, id string, change func(*Stored) bool) {
	h := wire.HashOf([]byte(k.Upstream), []byte(k.Credential), []byte(id))
	name := own + "/" + hex.EncodeToString(h[:])
	if s.log == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		st := s.stored[name]
		if !change(&st) {
			return
		}
		for old := range s.stored {
			if len(s.stored) < maxStored {
				break
			}
			delete(s.stored, old)
		}
		s.stored[name] = st
		return
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	_, err := store.Update(ctx, s.log.store, name, store.Query{Cells: []store.Range{store.One(kindStored, keyState)}},
		func(snap store.Snapshot) (*store.Batch, error) {
			var st Stored
			if raw, ok := snap.Cell(kindStored, keyState); ok {
				if err := json.Unmarshal(raw, &st); err != nil {
					return nil, fmt.Errorf("proxy: a stored answer is damaged: %w", err)
				}
			}
			if !change(&st) {
				return nil, nil
			}
			raw, err := json.Marshal(st)
			used := store.IndexKey{Name: indexUsed, Group: usedGroup, Key: store.Number(s.cfg.Now().UnixMilli())}
			return &store.Batch{Put: []store.Cell{{Kind: kindStored, Key: keyState, Value: raw, Index: []store.IndexKey{used}}}}, err
		})
	if err != nil {
		s.cfg.Failed(err)
	}
}
