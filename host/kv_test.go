package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/engine"
)

// first encodes an input of the guests kv and its like: a part behind its
// length, and the rest.
func first(a, rest string) string { return string([]byte{byte(len(a))}) + a + rest }

// wantAnswer calls and compares text and the sign of the number: positive ones
// are offsets, and no business of the test.
func wantAnswer(t *testing.T, m *host.Module, export, input string, n int64, text string) {
	t.Helper()
	out, err := m.Call(t.Context(), export, []byte(input))
	if err != nil {
		t.Errorf("%s(%q): %v", export, input, err)
		return
	}
	got := int64(binary.LittleEndian.Uint64(out))
	if got != n && (got <= 0 || n <= 0) || string(out[8:]) != text {
		t.Errorf("%s(%q) = %d, %q; want %d, %q", export, input, got, out[8:], n, text)
	}
}

func wantFault(t *testing.T, err error, kind host.Reason, detail string) {
	t.Helper()
	var trap *host.TrapError
	if !errors.As(err, &trap) || trap.Kind != kind || !strings.Contains(trap.Detail, detail) {
		t.Errorf("got %v; want a trap of kind %s that says %q", err, kind, detail)
	}
}

// keyList encodes what kv_list returns.
func keyList(keys ...string) string {
	var out []byte
	for _, k := range keys {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(k)))
		out = append(out, k...)
	}
	return string(out)
}

func TestKV_guest(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("kv"), Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory()}}}})
		wantAnswer(t, m, "get", first("a", ""), 0, "")
		wantAnswer(t, m, "set", first("a", "one"), 0, "")
		wantAnswer(t, m, "get", first("a", ""), 1, "one")
		wantAnswer(t, m, "set", first("a", ""), 0, "")
		wantAnswer(t, m, "get", first("a", ""), 1, "") // there, and empty
		wantAnswer(t, m, "copy", first("a", "b"), 0, "")
		wantAnswer(t, m, "get", first("b", ""), 1, "")
		wantAnswer(t, m, "set", first("b\xff\x00", "\x00\xff"), 0, "")
		wantAnswer(t, m, "list", first("", ""), 1, keyList("a", "b", "b\xff\x00"))
		wantAnswer(t, m, "list_two", first("", ""), 1, keyList("a", "b"))
		wantAnswer(t, m, "list_huge", first("b", ""), 1, keyList("b", "b\xff\x00"))
		wantAnswer(t, m, "list", first("b", "b"), 1, keyList("b\xff\x00"))
		wantAnswer(t, m, "list", first("c", ""), 0, "")
		wantAnswer(t, m, "delete", first("b", ""), 1, "")
		wantAnswer(t, m, "delete", first("b", ""), 0, "")
		wantAnswer(t, m, "no_error", "", 0, "")
		if s := m.Stats(); s.Denied != 0 || s.Uses["kv"] != 16 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestKV_names: modules whose names look alike in errors and logs do not share a namespace, and a swap keeps it.
func TestKV_names(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		h, store := newHost(t, host.Config{Engine: hosttest.Engine(e)}), kv.NewMemory()
		grants := host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: store}}}
		long := strings.Repeat("n", 200)
		names := []string{"a\x01", `a\x01`, "a\xff", `a\xff`, long + "1", long + "2"}
		var all []*host.Module
		for _, name := range names {
			m, err := h.Load(t.Context(), host.Spec{Name: name, Path: wat("kv"), Grants: grants})
			if err != nil {
				t.Fatal(err)
			}
			wantAnswer(t, m, "get", first("whose", ""), 0, "")
			wantAnswer(t, m, "set", first("whose", name), 0, "")
			all = append(all, m)
		}
		for n, m := range all {
			wantAnswer(t, m, "get", first("whose", ""), 1, names[n])
			for _, name := range []string{"", names[n], m.Name()} {
				if _, err := m.Swap(t.Context(), host.Spec{Name: name, Path: wat("kv"), Grants: grants}, host.SwapOptions{}); err != nil {
					t.Fatal(err)
				}
				wantAnswer(t, m, "get", first("whose", ""), 1, names[n])
			}
		}
		if _, err := all[4].Swap(t.Context(), host.Spec{Name: names[5], Path: wat("kv"), Grants: grants}, host.SwapOptions{}); err == nil {
			t.Error("a swap took the name of another module")
		}
	})
}

func TestKV_refused(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		store := kv.NewMemory()
		m := load(t, e, host.Spec{Path: wat("kv"), Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: store, Namespace: "n", Keys: 2, Bytes: 40, KeyBytes: 10, ValueBytes: 20}}}})
		key := strings.Repeat("k", 11)
		wantAnswer(t, m, "get", first(key, ""), int64(engine.CodeTooLarge), "too large: kv_get: the key has 11 bytes, 10 are allowed")
		wantAnswer(t, m, "list", first("", key), int64(engine.CodeTooLarge), "too large: kv_list: a key has at most 10 bytes")
		wantAnswer(t, m, "get", first("", ""), int64(engine.CodeInvalid), "invalid: kv_get: the key is empty")
		wantAnswer(t, m, "set", first("", "v"), int64(engine.CodeInvalid), "invalid: kv_set: the key is empty")
		wantAnswer(t, m, "set", first("a", strings.Repeat("v", 21)), int64(engine.CodeTooLarge), "too large: kv_set: the value has 21 bytes, 20 are allowed")
		wantAnswer(t, m, "set", first("a", strings.Repeat("v", 20)), 0, "")
		wantAnswer(t, m, "set", first("b", strings.Repeat("v", 19)), int64(engine.CodeQuota), "quota: kv_set: the quota is used up")
		wantAnswer(t, m, "set", first("b", strings.Repeat("v", 18)), 0, "")
		wantAnswer(t, m, "set", first("c", ""), int64(engine.CodeQuota), "quota: kv_set: the quota is used up")
		if s := m.Stats(); s.Denied != 5 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
		// A value that was put there with a larger limit.
		if err := store.Set(t.Context(), "n", "a", make([]byte, 21), kv.Quota{Keys: 9, Bytes: 99}); err != nil {
			t.Fatal(err)
		}
		wantAnswer(t, m, "get", first("a", ""), int64(engine.CodeTooLarge), "too large: kv_get: the value has 21 bytes, 20 are allowed")

		reader := load(t, e, host.Spec{Path: wat("kv"), Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: store, Namespace: "n", ReadOnly: true}}}})
		wantAnswer(t, reader, "set", first("a", ""), int64(engine.CodeDenied), "denied: kv_set: the operator granted reading only")
		wantAnswer(t, reader, "delete", first("a", ""), int64(engine.CodeDenied), "denied: kv_delete: the operator granted reading only")
		wantAnswer(t, reader, "list", first("", ""), 1, keyList("a", "b"))
		other := load(t, e, host.Spec{Path: wat("kv"), Name: "other", Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: store}}}})
		wantAnswer(t, other, "list", first("", ""), 0, "")

		for _, export := range []string{"bogus_key", "negative_key", "bogus_value"} {
			_, err := m.Call(t.Context(), export, []byte(first("a", "")))
			wantFault(t, err, host.TrapFault, "there is no block at")
		}
	})
}

func TestKV_notGranted(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		_, err := newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Path: wat("kv")})
		var bad *host.LoadError
		if !errors.As(err, &bad) || !errors.Is(err, host.ErrImport) ||
			bad.Problem != "imports mortise:host/1.kv_get, which needs the capability kv" || !strings.Contains(bad.Hint, "grant it (host/capability/kv) with") {
			t.Errorf("%v", err)
		}
		store := kv.NewMemory()
		_, err = newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Path: wat("kv_initialize"), Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: store}}}})
		if err == nil || !strings.Contains(err.Error(), "did not start") {
			t.Errorf("a store was used while an instance was made: %v", err)
		}
	})
	in, err := host.Inspect("kv", watBytes(t, "kv"))
	if err != nil || len(in.Problems) != 4 || in.Problems[0].Err != nil || in.Problems[0].Problem != "imports mortise:host/1.kv_get, which needs the capability kv" {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestKV_badGrant(t *testing.T) {
	t.Parallel()
	store := kv.NewMemory()
	for want, kv := range map[string]kv.Grant{
		"kv.Grant.Store is nil":              {},
		"kv.Grant.Keys -1 is negative":       {Store: store, Keys: -1},
		"kv.Grant.Bytes -1 is negative":      {Store: store, Bytes: -1},
		"kv.Grant.KeyBytes -1 is negative":   {Store: store, KeyBytes: -1},
		"kv.Grant.ValueBytes -1 is negative": {Store: store, ValueBytes: -1},
	} {
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("kv"), Grants: host.Grants{Capabilities: []host.Capability{&kv}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// stubbornKV does to each Get what its test wants.
type stubbornKV struct {
	kv.Store

	get func(ctx context.Context) error
}

func (s stubbornKV) Get(ctx context.Context, _, _ string) (value []byte, found bool, err error) {
	return nil, false, s.get(ctx)
}

func TestKV_faultyStore(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var lines logBuffer
		h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(&lines, slog.LevelWarn)})
		for text, get := range map[string]func(context.Context) error{
			"failed: kv_get: it did not work":     func(context.Context) error { return errors.New("open /secret/path: no") },
			"failed: kv_get: it did not work\x00": func(context.Context) error { panic("broken store") },
			"timeout: kv_get: it took too long":   func(context.Context) error { return fmt.Errorf("x: %w", context.DeadlineExceeded) },
			"quota: kv_get: the quota is used up": func(context.Context) error { return host.ErrQuota },
		} {
			m, err := h.Load(t.Context(), host.Spec{Path: wat("kv"), Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: stubbornKV{get: get}}}}})
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Call(t.Context(), "get", []byte(first("a", "")))
			if err != nil || string(out[8:]) != strings.TrimRight(text, "\x00") {
				t.Errorf("%q, %v; want %q", out[8:], err, text)
			}
		}
		for _, want := range []string{"open /secret/path: no", "panicked: broken store"} {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("the operator is not told %q:\n%s", want, lines.String())
			}
		}
	})
}

// TestKV_blocking holds that a store which waits for its context is left with the
// call, however it ends.
func TestKV_blocking(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		entered := make(chan struct{}, 1)
		wait := func(ctx context.Context) error {
			entered <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		spec := host.Spec{Path: wat("kv"), Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: stubbornKV{get: wait}}}}}
		spec.Limits.Timeout = 50 * time.Millisecond
		m := load(t, e, spec)
		_, err := m.Call(t.Context(), "get", []byte(first("a", "")))
		wantDeadline(t, err)
		<-entered

		spec.Limits.Timeout = time.Hour
		m = load(t, e, spec)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-entered; cancel() }()
		_, err = m.Call(ctx, "get", []byte(first("a", "")))
		wantFault(t, err, host.TrapCancelled, "the caller gave up")

		ended := make(chan error, 1)
		go func() {
			_, err := m.Call(t.Context(), "get", []byte(first("a", "")))
			ended <- err
		}()
		<-entered
		over, stop := context.WithCancel(t.Context())
		stop()
		if err := m.Close(over); !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		if err := <-ended; !errors.Is(err, host.ErrClosed) {
			t.Errorf("a call that Close interrupted: %v", err)
		}
	})
}

// TestKV_flood holds that a guest which does nothing else than ask is stopped.
func TestKV_flood(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{
			Path: wat("kv"), Limits: host.Limits{Timeout: 100 * time.Millisecond},
			Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory()}}},
		})
		_, err := m.Call(t.Context(), "flood", []byte(first("a", "")))
		if _, ok := errors.AsType[*host.TrapError](err); !ok {
			t.Errorf("flood: %v", err)
		}
	})
}

func TestKV_reentry(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var m *host.Module
		var inner error
		get := func(ctx context.Context) error {
			_, inner = m.Call(ctx, "get", []byte(first("a", "")))
			return nil
		}
		m = load(t, e, host.Spec{Path: wat("kv"), Limits: host.Limits{Instances: 1}, Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: stubbornKV{get: get}}}}})
		wantAnswer(t, m, "get", first("a", ""), 0, "")
		if !errors.Is(inner, host.ErrReentry) {
			t.Errorf("a module called itself: %v", inner)
		}
		// By way of another module it is the same.
		between := load(t, e, host.Spec{Path: wat("kv"), Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: stubbornKV{get: get}}}}})
		outer := func(ctx context.Context) error {
			_, err := between.Call(ctx, "get", []byte(first("a", "")))
			return err
		}
		inner = nil
		m = load(t, e, host.Spec{Path: wat("kv"), Limits: host.Limits{Instances: 1}, Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: stubbornKV{get: outer}}}}})
		wantAnswer(t, m, "get", first("a", ""), 0, "")
		if !errors.Is(inner, host.ErrReentry) {
			t.Errorf("a module called itself by way of another: %v", inner)
		}
		// Nor does it wait for itself.
		closing := func(ctx context.Context) error {
			inner = m.Close(ctx)
			return nil
		}
		m = load(t, e, host.Spec{Path: wat("kv"), Limits: host.Limits{Instances: 1}, Grants: host.Grants{Capabilities: []host.Capability{&kv.Grant{Store: stubbornKV{get: closing}}}}})
		wantAnswer(t, m, "get", first("a", ""), 0, "")
		if !errors.Is(inner, host.ErrReentry) {
			t.Errorf("a module closed itself: %v", inner)
		}
		wantAnswer(t, m, "get", first("a", ""), 0, "")
	})
}
