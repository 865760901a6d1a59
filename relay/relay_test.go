package relay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg relay.Config) *relay.Relay {
	t.Helper()
	if cfg.Folder == "" {
		cfg.Folder = filepath.Join(t.TempDir(), "relay")
	}
	r, err := relay.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// handleIn finds the handle that a text names.
func handleIn(t *testing.T, text string) string {
	t.Helper()
	found := regexp.MustCompile("stored as ([^ ]+)\\. Use the `read_relay` tool").FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no handle in %q", text)
	}
	return found[1]
}

// whole reads a text page by page.
func whole(t *testing.T, r *relay.Relay, handle string, limit int) string {
	t.Helper()
	var out strings.Builder
	for offset := int64(0); ; {
		p, err := r.Read(handle, offset, limit)
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
	for name, test := range map[string]func(*testing.T, *relay.Relay){
		"short_output_passes_through": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			for _, text := range []string{"", "x", "x\n", strings.Repeat("x\n", 200)} {
				if got := r.Shorten(t.Context(), "task", text); got != text {
					t.Fatalf("%q became %q", text, got)
				}
			}
		},
		"at_byte_threshold_passes_through": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			if text := strings.Repeat("x", 8192); r.Shorten(t.Context(), "task", text) != text {
				t.Fatal("8,192 bytes were relayed")
			}
		},
		"one_byte_over_threshold_relays": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			text := strings.Repeat("é", 4096) + "x"
			if got := whole(t, r, handleIn(t, r.Shorten(t.Context(), "task", text)), 1001); got != text {
				t.Fatal("what was kept is not the text")
			}
		},
		"line_threshold_trips_relay": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			got := r.Shorten(t.Context(), "task", strings.Repeat("x\n", 201))
			if !strings.Contains(got, "\n\n[task output relayed: 201 lines, 402 bytes total. Full output stored as ") {
				t.Fatalf("relayed as %q", got)
			}
		},
		"summary_contains_head_tail_and_hint": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			var b strings.Builder
			for i := range 300 {
				fmt.Fprintf(&b, "line %03d\n", i)
			}
			got := r.Shorten(t.Context(), "Bash Tool", b.String())
			for want, is := range map[string]bool{
				"line 000\n": true, "line 049\n[… 200 lines elided …]\nline 250\n": true, "line 299\n\n[bash_tool output": true, "line 050": false, "line 249": false,
			} {
				if strings.Contains(got, want) != is {
					t.Fatalf("%q is in it: %v, in %q", want, !is, got)
				}
			}
		},
		"cut_by_bytes_as_well_as_lines": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			for _, text := range []string{strings.Repeat("é", 1<<20), strings.Repeat(strings.Repeat("é", 50_000)+"\n", 3), strings.Repeat("\n", 9000), "\n" + strings.Repeat("x", 9000) + "\n"} {
				got := r.Shorten(t.Context(), "task", text)
				if len(got) > 8192+400 || !utf8.ValidString(got) || !strings.Contains(got, "elided") {
					t.Fatalf("%d bytes stand for %d: %.200q", len(got), len(text), got)
				}
			}
		},
		"notes": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			if got := r.ShortenNote(t.Context(), "task", "[exit 1]", "x\n"); got != "x\n[exit 1]" {
				t.Fatalf("%q", got)
			}
			if got := r.ShortenNote(t.Context(), "task", "[exit 1]", strings.Repeat("x\n", 201)); !strings.HasPrefix(got, "[exit 1]\nx\n") {
				t.Fatalf("%.100q", got)
			}
		},
		"read_pages_have_whole_characters": func(t *testing.T, r *relay.Relay) {
			t.Helper()
			text := strings.Repeat("aé世🙂", 2000)
			handle := handleIn(t, r.Shorten(t.Context(), "task", text))
			for _, limit := range []int{1, 2, 3, 7, 100, 0, 1 << 30} {
				if limit > 3 || limit == 0 { // below a character's size it comes in pieces
					if whole(t, r, handle, limit) != text {
						t.Fatalf("limit %d: the pages are not the text", limit)
					}
				} else if p, err := r.Read(handle, 1, limit); err != nil || p.Next <= 1 {
					t.Fatalf("limit %d: %+v, %v", limit, p, err)
				}
			}
			if p, err := r.Read(handle, 1<<40, 10); err != nil || p.Text != "" || p.Next != 0 {
				t.Fatalf("behind the end: %+v, %v", p, err)
			}
			if p, err := r.Read(handle, -5, 4); err != nil || p.Text != "aé" {
				t.Fatalf("before the start: %+v, %v", p, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, relay.Config{}))
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]relay.Config{
		"Folder": {}, "MaxBytes": {Folder: "x", MaxBytes: -1}, "MaxLines": {Folder: "x", MaxLines: -1}, "Quota": {Folder: "x", Quota: -1},
		"MaxAge": {Folder: "x", MaxAge: -1}, `Limits["bash"]`: {Folder: "x", Limits: map[string]int{"bash": 0}},
	} {
		if _, err := relay.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error is %v, want one that names %s", err, field)
		}
	}
	// Limits belong to one Relay; another is not changed by them.
	r, other := open(t, relay.Config{Limits: map[string]int{"bash": 10}}), open(t, relay.Config{})
	text := strings.Repeat("x", 11)
	if r.Shorten(t.Context(), "bash", text) == text || r.Shorten(t.Context(), "web", text) != text || other.Shorten(t.Context(), "bash", text) != text {
		t.Fatal("the limit of bash is not that of bash")
	}
}

func TestHandlesStayInTheFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "relay")
	outside := filepath.Join(filepath.Dir(folder), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, relay.Config{Folder: folder})
	for _, handle := range []string{"", ".", "..", "../secret", outside, "task-1-AAAAAAAAAAAAAAAAAAAAAAAAAA", "secret\x00", strings.Repeat("x", 1<<20)} {
		if p, err := r.Read(handle, 0, 0); !errors.Is(err, relay.ErrUnknown) || len(err.Error()) > 500 {
			t.Errorf("handle %.80q: %+v, %v", handle, p, err)
		}
	}
	// A link in the place of a text does not lead out of the folder.
	handle := handleIn(t, r.Shorten(t.Context(), "../../x", strings.Repeat("x\n", 201)))
	if err := os.Remove(filepath.Join(folder, handle)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, handle)); err != nil {
		testskip.Skip(t, "this system does not let the test make a symbolic link: %v", err)
	}
	if p, err := r.Read(handle, 0, 0); err == nil {
		t.Fatalf("read through a link: %+v", p)
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "Windows has no permission bits to look at")
	}
	folder := filepath.Join(t.TempDir(), "relay")
	r := open(t, relay.Config{Folder: folder})
	handle := handleIn(t, r.Shorten(t.Context(), "task", strings.Repeat("x\n", 201)))
	for name, want := range map[string]os.FileMode{folder: 0o700, filepath.Join(folder, handle): 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("mode is %s, want %s", info.Mode().Perm(), want)
		}
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

func TestQuotaAndAge(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "relay")
	c := &clock{now: time.Unix(1_000_000, 0)}
	cfg := relay.Config{Folder: folder, MaxBytes: 10, Quota: 100, Now: c.Now}
	r := open(t, cfg)
	stranger := filepath.Join(folder, "notes.txt")
	if err := os.WriteFile(stranger, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	keep := func() string { return handleIn(t, r.Shorten(t.Context(), "task", strings.Repeat("x", 40))) }
	known := func(handle string) bool { _, err := r.Read(handle, 0, 0); return err == nil }
	one, two := keep(), keep()
	if !known(one) { // and so was used after the other
		t.Fatal("there was room for two")
	}
	three := keep()
	if !known(one) || known(two) || !known(three) {
		t.Fatal("not the one that was unused for the longest time had to go")
	}
	if got := r.Shorten(t.Context(), "task", strings.Repeat("x", 101)); !strings.Contains(got, "could not be stored, and is lost") || strings.Contains(got, "read_relay") {
		t.Fatalf("a text that does not fit is said to be stored: %q", got)
	}
	if !known(one) || !known(three) {
		t.Fatal("what cannot be kept drove others out")
	}
	// Opened again it knows what is there and what was used.
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, cfg)
	if !known(one) || !known(three) {
		t.Fatal("texts are gone after a restart")
	}
	c.pass(relay.DefaultMaxAge)
	four := keep()
	if known(one) || known(three) || !known(four) {
		t.Fatal("what is too old was kept")
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Fatal("a file of somebody else was removed")
	}
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	r := open(t, relay.Config{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := r.Shorten(t.Context(), "task", strings.Repeat("x\n", 201)); !strings.Contains(got, "could not be stored, and is lost.]") {
		t.Fatalf("%q", got)
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	r := open(t, relay.Config{})
	handle := handleIn(t, r.Shorten(t.Context(), "task", strings.Repeat("0123456789", 1000)))
	use := func(args any) abi.ToolResult {
		result, err := r.CallTool(t.Context(), abi.ToolCall{ID: "c", Name: relay.ToolReadRelay, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if got := use(map[string]any{"handle": handle, "offset": int64(15), "limit": 5.0}); got.Content[0].Text != "56789\n[bytes 15 to 20 of 10000; go on with offset 20]" {
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
	if _, err := r.CallTool(t.Context(), abi.ToolCall{Name: "rm"}); err == nil || len(r.Tools()) != 1 {
		t.Fatal("an unknown tool was called")
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	r := open(t, relay.Config{MaxBytes: 10, Quota: 2000})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				text := r.Shorten(context.WithoutCancel(t.Context()), "task", strings.Repeat("x", 100))
				_, _ = r.Read(regexp.MustCompile(`[a-z]+-\d+-[A-Z2-7]{26}`).FindString(text), 0, 0)
			}
		})
	}
	wg.Wait()
}

func FuzzShorten(f *testing.F) {
	f.Add("a\nb\n", 3)
	f.Add(strings.Repeat("é\n\n", 200), 17)
	r, err := relay.New(relay.Config{Folder: f.TempDir(), MaxBytes: 64})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := r.Shorten(t.Context(), text, text)
		if len(got) > 64+2*50+500 {
			t.Fatalf("%d bytes stand for %d", len(got), len(text))
		}
		if found := regexp.MustCompile(`stored as ([^ ]+)\. Use`).FindStringSubmatch(got); found != nil && utf8.ValidString(text) {
			if back := whole(t, r, found[1], max(4, limit%100)); back != text {
				t.Fatalf("%q came back as %q", text, back)
			}
		}
	})
}
