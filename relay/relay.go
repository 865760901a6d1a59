package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Defaults of [Config].
const (
	DefaultMaxBytes = 8192
	DefaultMaxLines = 200
	DefaultQuota    = 256 << 20
	DefaultMaxAge   = 7 * 24 * time.Hour
)

// headLines and tailLines are what is shown of a text with many lines.
const headLines, tailLines = 50, 50

// sweepEvery is how often texts that are too old are looked for.
const sweepEvery = time.Hour

// ErrUnknown is a handle that is none, or whose text is gone.
var ErrUnknown = errors.New("no such text: the handle is wrong, or its text was removed to make room")

// Config makes a [Relay]. Folder is required. A zero limit means its default.
type Config struct {
	// Folder holds the texts. It is made if it is missing.
	Folder string
	// A text with at most MaxBytes and MaxLines stays as it is. Limits says otherwise
	// for MaxBytes, by label.
	MaxBytes int
	MaxLines int
	Limits   map[string]int
	// Quota is how many bytes the folder may hold. MaxAge is how long a text stays
	// after it was last read.
	Quota  int64
	MaxAge time.Duration
	Now    func() time.Time
	// Logger hears of texts that could not be kept. Nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.MaxLines = cmp.Or(c.MaxLines, DefaultMaxLines)
	c.Quota = cmp.Or(c.Quota, DefaultQuota)
	c.MaxAge = cmp.Or(c.MaxAge, DefaultMaxAge)
	c.Limits = maps.Clone(c.Limits)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Folder == "":
		return errors.New("relay: Config.Folder is missing")
	case c.MaxBytes < 0:
		return errors.New("relay: Config.MaxBytes is negative")
	case c.MaxLines < 0:
		return errors.New("relay: Config.MaxLines is negative")
	case c.Quota < 0:
		return errors.New("relay: Config.Quota is negative")
	case c.MaxAge < 0:
		return errors.New("relay: Config.MaxAge is negative")
	}
	for label, limit := range c.Limits {
		if limit < 1 {
			return fmt.Errorf("relay: Config.Limits[%q] is %d, want 1 or more", label, limit)
		}
	}
	return nil
}

// Relay keeps large texts. Make one with [New].
type Relay struct {
	cfg     Config
	root    *os.Root
	handles *regexp.Regexp

	mu    sync.Mutex
	files map[string]file
	total int64
	sweep time.Time // when to look for texts that are too old
}

// file is one kept text.
type file struct {
	size int64
	used time.Time
}

// New opens the folder and counts what is in it. Files that are not texts of a
// Relay are left alone.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("relay: folder: %w", err)
	}
	root, err := os.OpenRoot(cfg.Folder)
	if err != nil {
		return nil, fmt.Errorf("relay: folder: %w", err)
	}
	r := &Relay{cfg: cfg, root: root, files: map[string]file{}, handles: regexp.MustCompile(`^[a-z0-9_]{1,32}-\d{1,19}-[A-Z2-7]{26}$`)}
	if err := r.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("relay: folder: %w", err), root.Close())
	}
	return r, nil
}

func (r *Relay) scan() error {
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !r.handles.MatchString(e.Name()) {
			continue
		}
		r.files[e.Name()] = file{size: info.Size(), used: info.ModTime()}
		r.total += info.Size()
	}
	r.makeRoom(0)
	return nil
}

// Close lets go of the folder.
func (r *Relay) Close() error { return r.root.Close() }

// Shorten returns text as it is when it is small, and else what stands for it: its
// head, its tail and a handle. Label says whose text it is, a tool's for example.
func (r *Relay) Shorten(ctx context.Context, label, text string) string {
	return r.ShortenNote(ctx, label, "", text)
}

// ShortenNote is Shorten with a note, which stands behind a small text and before
// what stands for a large one.
func (r *Relay) ShortenNote(ctx context.Context, label, note, text string) string {
	limit := cmp.Or(r.cfg.Limits[label], r.cfg.MaxBytes)
	n := lines(text)
	if len(text) <= limit && n <= r.cfg.MaxLines {
		if note == "" {
			return text
		}
		return strings.TrimSuffix(text, "\n") + "\n" + note
	}
	handle, err := r.keep(label, text)
	where := fmt.Sprintf("Full output stored as %s. Use the `read_relay` tool with `offset`/`limit` to inspect specific portions.", handle)
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "a large text could not be kept", "label", label, "bytes", len(text), "error", err)
		where = "The full output could not be stored, and is lost."
	}
	out := summary(text, limit)
	if note != "" {
		out = note + "\n" + out
	}
	return fmt.Sprintf("%s\n\n[%s output relayed: %d lines, %d bytes total. %s]", out, slug(label), n, len(text), where)
}

// Keep puts a text aside, whatever its size, and returns the handle with which
// [Relay.Read] finds it. It fails when the text is larger than the quota, or cannot be
// written.
func (r *Relay) Keep(label, text string) (handle string, err error) {
	if handle, err = r.keep(label, text); err != nil {
		return "", fmt.Errorf("relay: text of %.80q: %w", label, err)
	}
	return handle, nil
}

// keep writes a text and returns its handle.
func (r *Relay) keep(label, text string) (handle string, err error) {
	size := int64(len(text))
	if size > r.cfg.Quota {
		return "", fmt.Errorf("%d bytes are more than the quota of %d", size, r.cfg.Quota)
	}
	now := r.cfg.Now()
	handle = fmt.Sprintf("%s-%d-%s", slug(label), max(now.Unix(), 0), rand.Text())
	r.mu.Lock()
	r.makeRoom(size)
	r.files[handle] = file{size: size, used: now}
	r.total += size
	r.mu.Unlock()
	if err := r.write(handle, text); err != nil {
		r.mu.Lock()
		r.remove(handle)
		r.mu.Unlock()
		return "", err
	}
	return handle, nil
}

func (r *Relay) write(handle, text string) error {
	f, err := r.root.OpenFile(handle, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// makeRoom removes what is too old, and then what was not used for the longest
// time, until so many bytes fit. The caller holds the lock, or has the Relay alone.
func (r *Relay) makeRoom(size int64) {
	now := r.cfg.Now()
	if r.total+size <= r.cfg.Quota && now.Before(r.sweep) {
		return
	}
	r.sweep = now.Add(min(sweepEvery, r.cfg.MaxAge))
	oldest := slices.SortedFunc(maps.Keys(r.files), func(a, b string) int {
		return cmp.Or(r.files[a].used.Compare(r.files[b].used), strings.Compare(a, b))
	})
	deadline := now.Add(-r.cfg.MaxAge)
	for _, handle := range oldest {
		if r.total+size <= r.cfg.Quota && r.files[handle].used.After(deadline) {
			return
		}
		r.remove(handle)
	}
}

// remove drops a text. The caller holds the lock, or has the Relay alone.
func (r *Relay) remove(handle string) {
	r.total -= r.files[handle].size
	delete(r.files, handle)
	if err := r.root.Remove(handle); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.cfg.Logger.Warn("a relayed text could not be removed", "error", err)
	}
}

// slug makes a label part of a file name.
func slug(label string) string {
	s := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		default:
			return '_'
		}
	}, label[:min(len(label), 32)])
	return cmp.Or(s[:min(len(s), 32)], "text")
}
