package kv

import (
	"cmp"
	"context"
	"errors"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Store keeps keys and values, each namespace apart from the others. Keys and
// values are any bytes. A Store must be safe for concurrent use, must return when
// its context ends, and must neither keep nor change the slices it is given.
// hosttest.TestKV holds what it must do.
type Store interface {
	// Get returns a value that belongs to the caller, and whether it is there.
	Get(ctx context.Context, namespace, key string) (value []byte, found bool, err error)
	// Set puts a value in place of the one that is there. When the namespace would
	// then hold more than q allows it fails with ErrQuota and changes nothing; that
	// is decided in one step, whatever other callers set.
	Set(ctx context.Context, namespace, key string, value []byte, q Quota) error
	// Delete removes a key and reports whether it was there.
	Delete(ctx context.Context, namespace, key string) (bool, error)
	// List returns at most limit keys that begin with prefix and come after after,
	// in the order of their bytes. An empty after starts at the first key.
	List(ctx context.Context, namespace, prefix, after string, limit int) ([]string, error)
}

// Quota bounds what a namespace may hold. Both are larger than zero.
type Quota struct {
	// Keys is the number of keys.
	Keys int
	// Bytes is the size of all keys and values together.
	Bytes int64
}

// Grant grants a namespace of a store: the imports kv_get, kv_set, kv_delete
// and kv_list. A zero quota is the default, a negative one is an error.
type Grant struct {
	// Store keeps the data. Required. The embedder closes it, after the module.
	Store Store
	// Namespace is shared by the modules that are granted the same one. Default the
	// module's name, byte for byte as it stands in its Spec.
	Namespace string
	// ReadOnly refuses kv_set and kv_delete with the code for denied.
	ReadOnly bool
	// Keys and Bytes bound the namespace. Default 10,000 keys and 16 MiB, keys
	// included.
	Keys  int
	Bytes int64
	// KeyBytes and ValueBytes bound one key and one value. Default 512 bytes and
	// 1 MiB.
	KeyBytes, ValueBytes int
}

// Checked implements host.Capability.
func (s *Grant) Checked(module string) (engine.Capability, error) {
	out := *s
	if out.Store == nil {
		return nil, errors.New("kv.Grant.Store is nil; give it NewMemory or another store")
	}
	if err := engine.Negative(
		engine.Field{Name: "kv.Grant.Keys", Value: int64(s.Keys)}, engine.Field{Name: "kv.Grant.Bytes", Value: s.Bytes},
		engine.Field{Name: "kv.Grant.KeyBytes", Value: int64(s.KeyBytes)}, engine.Field{Name: "kv.Grant.ValueBytes", Value: int64(s.ValueBytes)},
	); err != nil {
		return nil, err
	}
	out.Namespace = cmp.Or(s.Namespace, module)
	out.Keys = cmp.Or(s.Keys, 10_000)
	out.Bytes = cmp.Or(s.Bytes, 16<<20)
	out.KeyBytes = cmp.Or(s.KeyBytes, 512)
	out.ValueBytes = cmp.Or(s.ValueBytes, 1<<20)
	return &out, nil
}
