package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// KV keeps keys and values, each namespace apart from the others. Keys and
// values are any bytes. A KV must be safe for concurrent use, must return when
// its context ends, and must neither keep nor change the slices it is given.
// hosttest.TestKV holds what it must do.
type KV interface {
	// Get returns a value that belongs to the caller, and whether it is there.
	Get(ctx context.Context, namespace, key string) (value []byte, found bool, err error)
	// Set puts a value in place of the one that is there. When the namespace would
	// then hold more than q allows it fails with ErrQuota and changes nothing; that
	// is decided in one step, whoever else sets.
	Set(ctx context.Context, namespace, key string, value []byte, q KVQuota) error
	// Delete removes a key and tells whether it was there.
	Delete(ctx context.Context, namespace, key string) (bool, error)
	// List returns at most limit keys that begin with prefix and come after after,
	// in the order of their bytes. An empty after starts at the first key.
	List(ctx context.Context, namespace, prefix, after string, limit int) ([]string, error)
}

// ErrQuota means that a quota of a grant is used up.
var ErrQuota = errors.New("quota exceeded")

// KVQuota bounds what a namespace may hold. Both are larger than zero.
type KVQuota struct {
	// Keys is the number of keys.
	Keys int
	// Bytes is the size of all keys and values together.
	Bytes int64
}

// KVSpace grants a namespace of a store: the imports kv_get, kv_set, kv_delete
// and kv_list. A zero quota is the default, a negative one is an error.
type KVSpace struct {
	// Store keeps the data. Required. The embedder closes it, after the module.
	Store KV
	// Namespace is shared by the modules that are granted the same one. Default the
	// module's name, byte for byte as it stands in its Spec.
	Namespace string
	// ReadOnly refuses kv_set and kv_delete with [CodeDenied].
	ReadOnly bool
	// Keys and Bytes bound the namespace. Default 10,000 keys and 16 MiB, keys
	// included.
	Keys  int
	Bytes int64
	// KeyBytes and ValueBytes bound one key and one value. Default 512 bytes and
	// 1 MiB.
	KeyBytes, ValueBytes int
}

// withDefaults returns a copy with its zero fields filled in.
func (s *KVSpace) withDefaults(module string) (*KVSpace, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // no grant
	}
	out := *s
	if out.Store == nil {
		return nil, errors.New("Grants.KV.Store is nil; give it NewMemoryKV or another store")
	}
	if err := negative(
		field{"Grants.KV.Keys", int64(s.Keys)}, field{"Grants.KV.Bytes", s.Bytes},
		field{"Grants.KV.KeyBytes", int64(s.KeyBytes)}, field{"Grants.KV.ValueBytes", int64(s.ValueBytes)},
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

// field is a number of a grant with its name.
type field struct {
	name  string
	value int64
}

// negative names the first field that is below zero.
func negative(fields ...field) error {
	for _, f := range fields {
		if f.value < 0 {
			return fmt.Errorf("%s %d is negative; use 0 for the default", f.name, f.value)
		}
	}
	return nil
}
