package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/kv"
)

// TestKV holds what every [host.KV] must do. open returns an empty store, and is
// called once for each test; it closes what it opened with t.Cleanup.
func TestKV(t *testing.T, open func(t *testing.T) kv.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, kv.Store){
		"values": kvValues, "bytes": kvBytes, "isolation": kvIsolation, "list": kvList, "quota": kvQuota,
		"shrink": kvShrink, "atomic": kvAtomic, "owned": kvOwned, "cancelled": kvCancelled, "hostile names": kvHostileNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// roomy is a quota that no test reaches.
func roomy() kv.Quota { return kv.Quota{Keys: 1 << 20, Bytes: 1 << 30} }

func set(t *testing.T, s kv.Store, namespace, key, value string) {
	t.Helper()
	if err := s.Set(t.Context(), namespace, key, []byte(value), roomy()); err != nil {
		t.Fatalf("set %q: %v", key, err)
	}
}

func want(t *testing.T, s kv.Store, namespace, key, value string, there bool) {
	t.Helper()
	got, found, err := s.Get(t.Context(), namespace, key)
	if err != nil || found != there || string(got) != value {
		t.Errorf("%q in %q: %q, %t, %v; want %q, %t", key, namespace, got, found, err, value, there)
	}
}

func wantKeys(t *testing.T, s kv.Store, namespace, prefix, after string, limit int, keys ...string) {
	t.Helper()
	got, err := s.List(t.Context(), namespace, prefix, after, limit)
	if err != nil || !slices.Equal(got, keys) {
		t.Errorf("list %q after %q, %d: %q, %v; want %q", prefix, after, limit, got, err, keys)
	}
}

func remove(t *testing.T, s kv.Store, namespace, key string, there bool) {
	t.Helper()
	was, err := s.Delete(t.Context(), namespace, key)
	if err != nil || was != there {
		t.Errorf("delete %q: %t, %v; want %t", key, was, err, there)
	}
}

func kvValues(t *testing.T, s kv.Store) {
	t.Helper()
	want(t, s, "a", "k", "", false)
	remove(t, s, "a", "k", false)
	set(t, s, "a", "k", "one")
	want(t, s, "a", "k", "one", true)
	set(t, s, "a", "k", "two, which is longer")
	want(t, s, "a", "k", "two, which is longer", true)
	set(t, s, "a", "k", "")
	want(t, s, "a", "k", "", true)
	remove(t, s, "a", "k", true)
	remove(t, s, "a", "k", false)
	want(t, s, "a", "k", "", false)
}

// kvBytes holds that keys and values are bytes, not text.
func kvBytes(t *testing.T, s kv.Store) {
	t.Helper()
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	keys := []string{"\x00", "\x00\x00", "a", "a\x00", "a\x00b", "\x80", "\xff", "\xff\xff", string(all)}
	for i, key := range keys {
		set(t, s, "n", key, fmt.Sprint(i)+string(all))
	}
	for i, key := range keys {
		want(t, s, "n", key, fmt.Sprint(i)+string(all), true)
	}
	slices.Sort(keys)
	wantKeys(t, s, "n", "", "", 100, keys...)
	wantKeys(t, s, "n", "\xff", "", 100, "\xff", "\xff\xff")
	wantKeys(t, s, "n", "\xff\xff", "", 100, "\xff\xff")
}

func kvIsolation(t *testing.T, s kv.Store) {
	t.Helper()
	set(t, s, "a", "k", "of a")
	set(t, s, "ab", "k", "of ab")
	set(t, s, "a\x00b", "k", "of a0b")
	want(t, s, "b", "k", "", false)
	want(t, s, "a", "bk", "", false)
	want(t, s, "a", "k", "of a", true)
	remove(t, s, "ab", "k", true)
	want(t, s, "a", "k", "of a", true)
	want(t, s, "a\x00b", "k", "of a0b", true)
	wantKeys(t, s, "a", "", "", 10, "k")
	wantKeys(t, s, "ab", "", "", 10)
	// One namespace that is full does not fill another.
	full := kv.Quota{Keys: 1, Bytes: 100}
	if err := s.Set(t.Context(), "c", "k", nil, full); err != nil {
		t.Errorf("quota counts other namespaces: %v", err)
	}
}

func kvList(t *testing.T, s kv.Store) {
	t.Helper()
	for _, key := range []string{"b/2", "a", "b/1", "c", "b", "b/10"} {
		set(t, s, "n", key, "v")
	}
	wantKeys(t, s, "n", "", "", 10, "a", "b", "b/1", "b/10", "b/2", "c")
	wantKeys(t, s, "n", "b/", "", 10, "b/1", "b/10", "b/2")
	wantKeys(t, s, "n", "b/", "", 2, "b/1", "b/10")
	wantKeys(t, s, "n", "b/", "b/10", 2, "b/2")
	wantKeys(t, s, "n", "b/", "b/2", 2)
	wantKeys(t, s, "n", "b/", "a", 1, "b/1")
	wantKeys(t, s, "n", "b", "b", 10, "b/1", "b/10", "b/2")
	wantKeys(t, s, "n", "b", "bx", 10)
	wantKeys(t, s, "n", "a", "c", 10)
	wantKeys(t, s, "n", "zz", "", 10)
	wantKeys(t, s, "none", "", "", 10)
}

func kvQuota(t *testing.T, s kv.Store) {
	t.Helper()
	try := func(key, value string, ok bool, q kv.Quota) {
		t.Helper()
		err := s.Set(t.Context(), "n", key, []byte(value), q)
		if ok != (err == nil) || !ok && !errors.Is(err, host.ErrQuota) {
			t.Errorf("set %q to %q within %+v: %v", key, value, q, err)
		}
	}
	q := kv.Quota{Keys: 2, Bytes: 10}
	try("a", "1234", true, q)   // 5 bytes
	try("b", "1234", true, q)   // 10 bytes
	try("b", "12345", false, q) // 11 bytes
	try("c", "", false, q)      // 3 keys
	want(t, s, "n", "b", "1234", true)
	want(t, s, "n", "c", "", false)
	try("a", "4321", true, q) // as large as before
	try("a", "1", true, q)
	try("b", "1234567", true, q)
	remove(t, s, "n", "a", true)
	try("c", "", true, q)
	try("c", "12", false, q)
	try("long", "1", false, kv.Quota{Keys: 10, Bytes: 4})
	wantKeys(t, s, "n", "", "", 10, "b", "c")
}

// kvShrink holds that a space above a quota that was lowered can be cleared.
func kvShrink(t *testing.T, s kv.Store) {
	t.Helper()
	for _, key := range []string{"a", "b", "c"} {
		set(t, s, "n", key, "0123456789")
	}
	small := kv.Quota{Keys: 1, Bytes: 5}
	if err := s.Set(t.Context(), "n", "a", []byte("0"), small); err != nil {
		t.Errorf("a smaller value was refused: %v", err)
	}
	if err := s.Set(t.Context(), "n", "b", []byte("0123456789x"), small); !errors.Is(err, host.ErrQuota) {
		t.Errorf("a larger value above the quota: %v", err)
	}
	if err := s.Set(t.Context(), "n", "d", nil, small); !errors.Is(err, host.ErrQuota) {
		t.Errorf("another key above the quota: %v", err)
	}
}

// kvAtomic holds that many who set at once do not pass the quota together.
func kvAtomic(t *testing.T, s kv.Store) {
	t.Helper()
	const keys = 5
	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			err := s.Set(t.Context(), "n", fmt.Sprintf("%02d", i), []byte("123"), kv.Quota{Keys: keys, Bytes: 1000})
			switch {
			case err == nil:
				done.Add(1)
			case !errors.Is(err, host.ErrQuota):
				t.Errorf("set: %v", err)
			}
		})
	}
	wg.Wait()
	got, err := s.List(t.Context(), "n", "", "", 100)
	if err != nil || len(got) != keys || done.Load() != keys {
		t.Errorf("%d keys were set and %d are there, of %d; %v", done.Load(), len(got), keys, err)
	}
}

// kvOwned holds that a store shares no bytes with its callers.
func kvOwned(t *testing.T, s kv.Store) {
	t.Helper()
	value := []byte("value")
	if err := s.Set(t.Context(), "n", "k", value, roomy()); err != nil {
		t.Fatal(err)
	}
	copy(value, "?????")
	got, _, err := s.Get(t.Context(), "n", "k")
	if err != nil || !bytes.Equal(got, []byte("value")) {
		t.Fatalf("the caller's slice was kept: %q, %v", got, err)
	}
	copy(got, "YYYYY")
	want(t, s, "n", "k", "value", true)
}

func kvCancelled(t *testing.T, s kv.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := s.Get(ctx, "n", "k")
	_, deleteErr := s.Delete(ctx, "n", "k")
	_, listErr := s.List(ctx, "n", "", "", 1)
	for name, err := range map[string]error{
		"get": getErr, "set": s.Set(ctx, "n", "k", nil, roomy()), "delete": deleteErr, "list": listErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %v", name, err)
		}
	}
	want(t, s, "n", "k", "", false)
}

// kvHostileNames holds that no name is taken for anything but a name.
func kvHostileNames(t *testing.T, s kv.Store) {
	t.Helper()
	names := []string{
		`'; DROP TABLE kv; --`, `" OR 1=1 --`, `%`, `_`, `*`, `?`, `[a-z]`, `\`, `../../etc/passwd`, `$(id)`, "`", `{}`, "kv", "NULL",
	}
	for i, name := range names {
		set(t, s, name, name, fmt.Sprint(i))
	}
	for i, name := range names {
		want(t, s, name, name, fmt.Sprint(i), true)
		wantKeys(t, s, name, "", "", 10, name)
		wantKeys(t, s, name, name, "", 10, name)
		wantKeys(t, s, name, "%", name, 10)
	}
}
