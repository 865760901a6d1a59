package host

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Fuel for work of a store: a look and a change.
const (
	kvLook   = 2_000
	kvChange = 20_000
)

// maxKeys bounds the keys of one kv_list.
const maxKeys = 1000

// emptyBlock is the offset that stands for no bytes where 0 means something
// else: the kernels know no block there, so its length is 0.
const emptyBlock = 1

// kvGet is the import kv_get: a block with the value, 0 when there is none.
func kvGet(g guest, stack []uint64) {
	ctx, s := g.enter("kv_get")
	key, code := kvKey(g, s, "kv_get", stack[0], kvLook)
	if stack[0] = code; code != 0 {
		return
	}
	var value []byte
	var found bool
	err := guard(func() (err error) {
		value, found, err = s.caps.kv.Store.Get(ctx, s.caps.kv.Namespace, key)
		return err
	})
	g.leave()
	switch {
	case err != nil:
		stack[0] = s.failed(ctx, "kv_get", err)
	case len(value) > s.caps.kv.ValueBytes:
		stack[0] = s.refuse(CodeTooLarge, fmt.Sprintf("kv_get: the value has %d bytes, %d are allowed", len(value), s.caps.kv.ValueBytes))
	case found && len(value) == 0:
		stack[0] = emptyBlock
	case found:
		stack[0] = g.store("kv_get", value)
	}
}

// kvSet is the import kv_set.
func kvSet(g guest, stack []uint64) {
	ctx, s := g.enter("kv_set")
	at := stack[1]
	key, code := kvKey(g, s, "kv_set", stack[0], kvChange)
	if code == 0 {
		code = s.writable("kv_set")
	}
	if stack[0] = half(code); code != 0 {
		return
	}
	value, kv := optional(g, "kv_set", at), s.caps.kv
	if len(value) > kv.ValueBytes {
		stack[0] = half(s.refuse(CodeTooLarge, fmt.Sprintf("kv_set: the value has %d bytes, %d are allowed", len(value), kv.ValueBytes)))
		return
	}
	err := guard(func() error {
		return kv.Store.Set(ctx, kv.Namespace, key, []byte(value), KVQuota{Keys: kv.Keys, Bytes: kv.Bytes})
	})
	g.leave()
	if err != nil {
		stack[0] = half(s.failed(ctx, "kv_set", err))
	}
}

// kvDelete is the import kv_delete: 1 when the key was there.
func kvDelete(g guest, stack []uint64) {
	ctx, s := g.enter("kv_delete")
	key, code := kvKey(g, s, "kv_delete", stack[0], kvChange)
	if code == 0 {
		code = s.writable("kv_delete")
	}
	if stack[0] = half(code); code != 0 {
		return
	}
	var was bool
	err := guard(func() (err error) {
		was, err = s.caps.kv.Store.Delete(ctx, s.caps.kv.Namespace, key)
		return err
	})
	g.leave()
	switch {
	case err != nil:
		stack[0] = half(s.failed(ctx, "kv_delete", err))
	case was:
		stack[0] = 1
	}
}

// kvList is the import kv_list: a block of keys, each after its length as a
// little-endian u32; 0 when there are none.
func kvList(g guest, stack []uint64) {
	ctx, s := g.enter("kv_list")
	s.caps.use.kv.Add(1)
	prefix, after := optional(g, "kv_list", stack[0]), optional(g, "kv_list", stack[1])
	limit := maxKeys
	if n := uint32(stack[2]); n > 0 { //nolint:gosec // an i32 for the host
		limit = int(min(n, maxKeys))
	}
	g.spend(kvLook + 100*limit)
	if longest := s.caps.kv.KeyBytes; len(prefix) > longest || len(after) > longest {
		stack[0] = s.refuse(CodeTooLarge, fmt.Sprintf("kv_list: a key has at most %d bytes", longest))
		return
	}
	out, err := s.caps.kv.page(ctx, prefix, after, limit)
	g.leave()
	stack[0] = 0
	switch {
	case err != nil:
		stack[0] = s.failed(ctx, "kv_list", err)
	case len(out) > 0:
		stack[0] = g.store("kv_list", out)
	}
}

// page encodes keys, at most limit, even when the store has more to say.
func (s *KVSpace) page(ctx context.Context, prefix, after string, limit int) ([]byte, error) {
	var out []byte
	err := guard(func() error {
		keys, err := s.Store.List(ctx, s.Namespace, prefix, after, limit)
		for _, key := range keys[:min(len(keys), limit)] {
			out = binary.LittleEndian.AppendUint32(out, uint32(len(key))) //nolint:gosec // bounded by KeyBytes
			out = append(out, key...)
		}
		return err
	})
	return out, err
}

// kvKey reads a key. A code other than 0 is the answer for the guest.
func kvKey(g guest, s *callState, name string, offset uint64, cost int) (key string, code uint64) {
	s.caps.use.kv.Add(1)
	g.spend(cost)
	key = optional(g, name, offset)
	switch {
	case key == "":
		return "", s.refuse(CodeInvalid, name+": the key is empty")
	case len(key) > s.caps.kv.KeyBytes:
		return "", s.refuse(CodeTooLarge, fmt.Sprintf("%s: the key has %d bytes, %d are allowed", name, len(key), s.caps.kv.KeyBytes))
	}
	return key, 0
}

// writable refuses a change of a space that was granted read-only.
func (s *callState) writable(name string) uint64 {
	if s.caps.kv.ReadOnly {
		return s.refuse(CodeDenied, name+": the operator granted reading only")
	}
	return 0
}

// optional copies a block; offset 0 stands for none.
func optional(g guest, name string, offset uint64) string {
	if offset == 0 || offset == emptyBlock {
		return ""
	}
	return string(g.block(name, offset))
}

// half is a code as an i32 of the guest.
func half(code uint64) uint64 { return code & 0xffffffff }
