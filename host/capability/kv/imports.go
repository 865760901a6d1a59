package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Fuel for work of a store: a look and a change.
const (
	kvLook   = 2_000
	kvChange = 20_000
)

// maxKeys bounds the keys of one kv_list.
const maxKeys = 1000

// kvOpened is an open space.
type kvOpened struct {
	space *Grant
	uses  *atomic.Int64
}

// Capability implements host.Capability.
func (*Grant) Capability() string { return "kv" }

// Open implements host.Capability.
func (s *Grant) Open(env *engine.Env) (*engine.Opened, error) {
	o := &kvOpened{s, env.Use.Counter("kv")}
	return &engine.Opened{Blocking: true, Functions: []engine.HostFunc{
		engine.Function("kv_get", o.get), engine.Function("kv_set", o.set), engine.Function("kv_delete", o.delete), engine.Function("kv_list", o.list),
	}}, nil
}

// get is the import kv_get: a block with the value, 0 when there is none.
func (o *kvOpened) get(g engine.Guest, stack []uint64) {
	ctx, s := g.Enter("kv_get")
	key, code := o.key(g, s, "kv_get", stack[0], kvLook)
	if stack[0] = code; code != 0 {
		return
	}
	var value []byte
	var found bool
	err := engine.Guard(func() (err error) {
		value, found, err = o.space.Store.Get(ctx, o.space.Namespace, key)
		return err
	})
	g.Leave()
	switch {
	case err != nil:
		stack[0] = s.Failed(ctx, "kv_get", err)
	case len(value) > o.space.ValueBytes:
		stack[0] = s.Refuse(engine.CodeTooLarge, fmt.Sprintf("kv_get: the value has %d bytes, %d are allowed", len(value), o.space.ValueBytes))
	case found && len(value) == 0:
		stack[0] = engine.EmptyBlock
	case found:
		stack[0] = g.Store("kv_get", value)
	}
}

// set is the import kv_set.
func (o *kvOpened) set(g engine.Guest, stack []uint64) {
	ctx, s := g.Enter("kv_set")
	at := stack[1]
	key, code := o.key(g, s, "kv_set", stack[0], kvChange)
	if code == 0 {
		code = o.writable(s, "kv_set")
	}
	if stack[0] = engine.Half(code); code != 0 {
		return
	}
	value, kv := engine.Optional(g, "kv_set", at), o.space
	if len(value) > kv.ValueBytes {
		stack[0] = engine.Half(s.Refuse(engine.CodeTooLarge, fmt.Sprintf("kv_set: the value has %d bytes, %d are allowed", len(value), kv.ValueBytes)))
		return
	}
	err := engine.Guard(func() error {
		return kv.Store.Set(ctx, kv.Namespace, key, []byte(value), Quota{Keys: kv.Keys, Bytes: kv.Bytes})
	})
	g.Leave()
	if err != nil {
		stack[0] = engine.Half(s.Failed(ctx, "kv_set", err))
	}
}

// delete is the import kv_delete: 1 when the key was there.
func (o *kvOpened) delete(g engine.Guest, stack []uint64) {
	ctx, s := g.Enter("kv_delete")
	key, code := o.key(g, s, "kv_delete", stack[0], kvChange)
	if code == 0 {
		code = o.writable(s, "kv_delete")
	}
	if stack[0] = engine.Half(code); code != 0 {
		return
	}
	var was bool
	err := engine.Guard(func() (err error) {
		was, err = o.space.Store.Delete(ctx, o.space.Namespace, key)
		return err
	})
	g.Leave()
	switch {
	case err != nil:
		stack[0] = engine.Half(s.Failed(ctx, "kv_delete", err))
	case was:
		stack[0] = 1
	}
}

// list is the import kv_list: a block of keys, each after its length as a
// little-endian u32; 0 when there are none.
func (o *kvOpened) list(g engine.Guest, stack []uint64) {
	ctx, s := g.Enter("kv_list")
	o.uses.Add(1)
	prefix, after := engine.Optional(g, "kv_list", stack[0]), engine.Optional(g, "kv_list", stack[1])
	limit := maxKeys
	if n := uint32(stack[2]); n > 0 { //nolint:gosec // an i32 for the host
		limit = int(min(n, maxKeys))
	}
	g.Spend(kvLook + 100*limit)
	if longest := o.space.KeyBytes; len(prefix) > longest || len(after) > longest {
		stack[0] = s.Refuse(engine.CodeTooLarge, fmt.Sprintf("kv_list: a key has at most %d bytes", longest))
		return
	}
	out, err := o.space.page(ctx, prefix, after, limit)
	g.Leave()
	stack[0] = 0
	switch {
	case err != nil:
		stack[0] = s.Failed(ctx, "kv_list", err)
	case len(out) > 0:
		stack[0] = g.Store("kv_list", out)
	}
}

// page encodes keys, at most limit, even when the store has more to say.
func (s *Grant) page(ctx context.Context, prefix, after string, limit int) ([]byte, error) {
	var out []byte
	err := engine.Guard(func() error {
		keys, err := s.Store.List(ctx, s.Namespace, prefix, after, limit)
		for _, key := range keys[:min(len(keys), limit)] {
			out = binary.LittleEndian.AppendUint32(out, uint32(len(key))) //nolint:gosec // bounded by KeyBytes
			out = append(out, key...)
		}
		return err
	})
	return out, err
}

// key reads a key. A code other than 0 is the answer for the guest.
func (o *kvOpened) key(g engine.Guest, s *engine.CallState, name string, offset uint64, cost int) (key string, code uint64) {
	o.uses.Add(1)
	g.Spend(cost)
	key = engine.Optional(g, name, offset)
	switch {
	case key == "":
		return "", s.Refuse(engine.CodeInvalid, name+": the key is empty")
	case len(key) > o.space.KeyBytes:
		return "", s.Refuse(engine.CodeTooLarge, fmt.Sprintf("%s: the key has %d bytes, %d are allowed", name, len(key), o.space.KeyBytes))
	}
	return key, 0
}

// writable refuses a change of a space that was granted read-only.
func (o *kvOpened) writable(s *engine.CallState, name string) uint64 {
	if o.space.ReadOnly {
		return s.Refuse(engine.CodeDenied, name+": the operator granted reading only")
	}
	return 0
}
