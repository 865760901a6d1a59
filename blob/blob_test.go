package blob_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg blob.Config) *blob.Store {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = memstore.New()
	}
	r, err := blob.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// handleIn finds the handle that a text names.
func handleIn(t *testing.T, text string) string {
	t.Helper()
	found := regexp.MustCompile("stored as ([^ ]+)\\. Use the `read_output` tool").FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no handle in %q", text)
	}
	return found[1]
}

// whole reads a text page by page.
func whole(t *testing.T, r *blob.Store, handle string, limit int) string {
	t.Helper()
	var out strings.Builder
	for offset := int64(0); ; {
		p, err := r.Read(t.Context(), "a", handle, offset, limit)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(p.Text)
		if offset = p.Next; p.Next == 0 {
			return out.String()
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *blob.Store){
		"short_output_passes_through": func(t *testing.T, r *blob.Store) {
			t.Helper()
			for _, text := range []string{"", "x", "x\n", strings.Repeat("x\n", 200)} {
				if got := r.Shorten(t.Context(), "a", "task", text); got != text {
					t.Fatalf("%q became %q", text, got)
				}
			}
		},
		"at_byte_threshold_passes_through": func(t *testing.T, r *blob.Store) {
			t.Helper()
			if text := strings.Repeat("x", 8192); r.Shorten(t.Context(), "a", "task", text) != text {
				t.Fatal("8,192 bytes were shortened")
			}
		},
		"one_byte_over_threshold_relays": func(t *testing.T, r *blob.Store) {
			t.Helper()
			text := strings.Repeat("é", 4096) + "x"
			if got := whole(t, r, handleIn(t, r.Shorten(t.Context(), "a", "task", text)), 1001); got != text {
				t.Fatal("what was kept is not the text")
			}
		},
		"line_threshold_trips_relay": func(t *testing.T, r *blob.Store) {
			t.Helper()
			got := r.Shorten(t.Context(), "a", "task", strings.Repeat("x\n", 201))
			if !strings.Contains(got, "\n\n[task output shortened: 201 lines, 402 bytes in total. The whole output is stored as ") {
				t.Fatalf("shortened to %q", got)
			}
		},
		"summary_contains_head_tail_and_hint": func(t *testing.T, r *blob.Store) {
			t.Helper()
			var b strings.Builder
			for i := range 300 {
				fmt.Fprintf(&b, "line %03d\n", i)
			}
			got := r.Shorten(t.Context(), "a", "Bash Tool", b.String())
			for want, is := range map[string]bool{
				"line 000\n": true, "line 049\n[… 200 lines elided …]\nline 250\n": true, "line 299\n\n[bash_tool output": true, "line 050": false, "line 249": false,
			} {
				if strings.Contains(got, want) != is {
					t.Fatalf("%q is in it: %v, in %q", want, !is, got)
				}
			}
		},
		"cut_by_bytes_as_well_as_lines": func(t *testing.T, r *blob.Store) {
			t.Helper()
			for _, text := range []string{strings.Repeat("é", 1<<20), strings.Repeat(strings.Repeat("é", 50_000)+"\n", 3), strings.Repeat("\n", 9000), "\n" + strings.Repeat("x", 9000) + "\n"} {
				got := r.Shorten(t.Context(), "a", "task", text)
				if len(got) > 8192+400 || !utf8.ValidString(got) || !strings.Contains(got, "elided") {
					t.Fatalf("%d bytes replace %d: %.200q", len(got), len(text), got)
				}
			}
		},
		"read_pages_have_whole_characters": func(t *testing.T, r *blob.Store) {
			t.Helper()
			text := strings.Repeat("aé世🙂", 2000)
			handle := handleIn(t, r.Shorten(t.Context(), "a", "task", text))
			for _, limit := range []int{1, 2, 3, 7, 100, 0, 1 << 30} {
				if limit > 3 || limit == 0 { // below a character's size it comes in pieces
					if whole(t, r, handle, limit) != text {
						t.Fatalf("limit %d: the pages are not the text", limit)
					}
				} else if p, err := r.Read(t.Context(), "a", handle, 1, limit); err != nil || p.Next <= 1 {
					t.Fatalf("limit %d: %+v, %v", limit, p, err)
				}
			}
			if p, err := r.Read(t.Context(), "a", handle, 1<<40, 10); err != nil || p.Text != "" || p.Next != 0 {
				t.Fatalf("behind the end: %+v, %v", p, err)
			}
			if p, err := r.Read(t.Context(), "a", handle, -5, 4); err != nil || p.Text != "aé" {
				t.Fatalf("before the start: %+v, %v", p, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, blob.Config{}))
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]blob.Config{
		"Store": {}, "InlineBytes": {InlineBytes: -1}, "InlineLines": {InlineLines: -1}, "MaxBytes": {MaxBytes: -1}, "MaxAge": {MaxAge: -1},
		"MaxCount": {MaxCount: -1},
	} {
		if field != "Store" {
			cfg.Store = memstore.New()
		}
		if _, err := blob.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error is %v, want one that names %s", err, field)
		}
	}
}

func TestHandlesOfOneThread(t *testing.T) {
	t.Parallel()
	r := open(t, blob.Config{})
	mine, err := r.Put(t.Context(), "b", "../../x", "text of b")
	if err != nil {
		t.Fatal(err)
	}
	for _, handle := range []string{"", ".", "../secret", mine, "task-AAAAAAAAAAAAAAAAAAAAAAAAAA", "secret\x00", strings.Repeat("x", 1<<20)} {
		if p, err := r.Read(t.Context(), "a", handle, 0, 0); !errors.Is(err, blob.ErrUnknown) || len(err.Error()) > 500 {
			t.Errorf("handle %.80q: %+v, %v", handle, p, err)
		}
	}
	if p, err := r.Read(t.Context(), "b", mine, 0, 0); err != nil || p.Text != "text of b" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A thread that is dropped from the store takes its texts along.
func TestTextsGoWithTheirThread(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	r := open(t, blob.Config{Store: s})
	handle, err := r.Put(t.Context(), "a", "x", "text")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), store.Batch{Thread: "a", Base: store.AnyRevision, Drop: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context(), "a", handle, 0, 0); !errors.Is(err, blob.ErrUnknown) {
		t.Error(err)
	}
}

// dropping is a store in which a thread is dropped right after its texts were listed.
type dropping struct{ store.Store }

func (d dropping) Scan(ctx context.Context, s store.Scan) ([]store.Ref, error) {
	refs, err := d.Store.Scan(ctx, s)
	if err == nil {
		_, err = d.Apply(ctx, store.Batch{Thread: "a", Base: store.AnyRevision, Drop: true})
	}
	return refs, err
}

func TestPruneLeavesADroppedThreadGone(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	c := &clock{now: time.Unix(1_000_000, 0)}
	if _, err := open(t, blob.Config{Store: s, Now: c.Now}).Put(t.Context(), "a", "x", "text"); err != nil {
		t.Fatal(err)
	}
	c.pass(2 * blob.DefaultMaxAge)
	if n, _, err := open(t, blob.Config{Store: dropping{s}, Now: c.Now}).Prune(t.Context()); n != 1 || err != nil {
		t.Fatalf("pruned %d, %v", n, err)
	}
	if got, err := s.Read(t.Context(), "a", store.Query{}); err != nil || got.Revision != 0 {
		t.Fatalf("the thread has revision %d again, %v", got.Revision, err)
	}
}

// clock is a clock that the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestPrune(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Unix(1_000_000, 0)}
	r := open(t, blob.Config{InlineBytes: 10, MaxBytes: 100, Now: c.Now})
	put := func(thread string, size int) string {
		handle, err := r.Put(t.Context(), thread, "task", strings.Repeat("x", size))
		if err != nil {
			t.Fatal(err)
		}
		return thread + " " + handle
	}
	known := func(place string) bool {
		thread, handle, _ := strings.Cut(place, " ")
		_, err := r.Read(t.Context(), thread, handle, 0, 0)
		return err == nil
	}
	one, two := put("a", 40), put("b", 40)
	if !known(one) || !known(two) {
		t.Fatal("there was room for two")
	}
	three := put("a", 40)
	if known(one) || !known(two) || !known(three) {
		t.Fatal("the oldest was not deleted")
	}
	if got := r.Shorten(t.Context(), "a", "task", strings.Repeat("x", 101)); !strings.Contains(got, "could not be stored, and is lost") || strings.Contains(got, "read_output") {
		t.Fatalf("a text that does not fit: %q", got)
	}
	if !known(two) || !known(three) {
		t.Fatal("a text that does not fit deleted others")
	}
	c.pass(blob.DefaultMaxAge)
	if n, bytes, err := r.Prune(t.Context()); n != 2 || bytes != 80 || err != nil {
		t.Fatalf("pruned %d, %d bytes, %v", n, bytes, err)
	}
	if known(two) || known(three) || !known(put("a", 40)) {
		t.Fatal("texts that are too old were kept")
	}
}

func TestPruneByCount(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Unix(1_000_000, 0)}
	r := open(t, blob.Config{MaxCount: 3, Now: c.Now})
	var handles []string
	for range 5 {
		handle, err := r.Put(t.Context(), "a", "task", "text")
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, handle)
	}
	if n, bytes, err := r.Prune(t.Context()); n != 2 || bytes != 8 || err != nil {
		t.Fatalf("pruned %d, %d bytes, %v", n, bytes, err)
	}
	for i, handle := range handles {
		if _, err := r.Read(t.Context(), "a", handle, 0, 0); (err == nil) != (i >= 2) {
			t.Errorf("text %d: %v", i, err)
		}
	}
}

// Without new texts, too, old ones are deleted.
func TestMaintain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, blob.Config{MaxAge: time.Minute})
		handle, err := r.Put(t.Context(), "a", "task", "text")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Maintain(ctx) })
		time.Sleep(30 * time.Second) // of the test's clock
		if _, err := r.Read(t.Context(), "a", handle, 0, 0); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := r.Read(t.Context(), "a", handle, 0, 0); !errors.Is(err, blob.ErrUnknown) {
			t.Errorf("an old text: %v", err)
		}
		cancel()
		wg.Wait()
	})
}

// broken is a store that fails.
type broken struct{ store.Store }

func (broken) Apply(context.Context, store.Batch) (uint64, error) {
	return 0, errors.New("no space left")
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	r := open(t, blob.Config{Store: broken{memstore.New()}})
	if got := r.Shorten(t.Context(), "a", "task", strings.Repeat("x\n", 201)); !strings.Contains(got, "could not be stored, and is lost.]") {
		t.Fatalf("%q", got)
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	r := open(t, blob.Config{})
	handle := handleIn(t, r.Shorten(t.Context(), "a", "task", strings.Repeat("0123456789", 1000)))
	use := func(args any) abi.ToolResult {
		result, err := r.Tools("a").CallTool(t.Context(), abi.ToolCall{ID: "c", Name: blob.ToolReadOutput, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if got := use(map[string]any{"handle": handle, "offset": int64(15), "limit": 5.0}); got.Content[0].Text != "56789\n[bytes 15 to 20 of 10000; continue with offset 20]" {
		t.Fatalf("%+v", got)
	}
	if got := use(map[string]any{"handle": handle, "offset": int64(9998)}); got.Content[0].Text != "89\n[bytes 9998 to 10000 of 10000; this is the end]" {
		t.Fatalf("%+v", got)
	}
	for _, args := range []any{nil, "x", map[string]any{}, map[string]any{"handle": "../x", "offset": -1e300, "limit": "y"}} {
		if got := use(args); got.Status != abi.ToolError || got.Message == "" {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	if _, err := r.Tools("a").CallTool(t.Context(), abi.ToolCall{Name: "rm"}); err == nil || len(r.Tools("a").Tools()) != 1 {
		t.Fatal("an unknown tool was called")
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	r := open(t, blob.Config{InlineBytes: 10, MaxBytes: 2000})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				text := r.Shorten(context.WithoutCancel(t.Context()), "a", "task", strings.Repeat("x", 100))
				_, _ = r.Read(t.Context(), "a", regexp.MustCompile(`[a-z]+-[A-Z2-7]{26}`).FindString(text), 0, 0)
			}
		})
	}
	wg.Wait()
}

func FuzzShorten(f *testing.F) {
	f.Add("a\nb\n", 3)
	f.Add(strings.Repeat("é\n\n", 200), 17)
	r, err := blob.New(blob.Config{Store: memstore.New(), InlineBytes: 64})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := r.Shorten(t.Context(), "a", text, text)
		if len(got) > 64+2*50+500 {
			t.Fatalf("%d bytes replace %d", len(got), len(text))
		}
		if found := regexp.MustCompile(`stored as ([^ ]+)\. Use`).FindStringSubmatch(got); found != nil && utf8.ValidString(text) {
			if back := whole(t, r, found[1], max(4, limit%100)); back != text {
				t.Fatalf("%q came back as %q", text, back)
			}
		}
	})
}
