package blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Defaults of [Config].
const (
	DefaultInlineBytes = 8192
	DefaultInlineLines = 200
	DefaultMaxBytes    = 256 << 20
	DefaultMaxAge      = 7 * 24 * time.Hour
)

// ErrUnknown reports a handle without a text.
var ErrUnknown = errors.New("no such text: the handle is wrong, or its text was deleted to make room")

// cellKind and index are names in the store. The index has all texts of all threads, by age.
const (
	cellKind = "blob"
	index    = "blob"
	group    = "all"
)

// Config makes a [Store]. Store is required. A zero limit means its default.
type Config struct {
	// Store keeps the texts. The caller closes it.
	Store store.Store
	// A text with at most InlineBytes and InlineLines stays in the conversation.
	InlineBytes int
	InlineLines int
	// MaxBytes is how many bytes all texts may have, MaxCount how many texts there may be, no limit when 0.
	// MaxAge is how long a text is stored.
	MaxBytes int64
	MaxCount int
	MaxAge   time.Duration
	Now      func() time.Time
	// Logger gets texts that could not be stored. Nil discards.
	Logger *slog.Logger
}

func (c Config) checked() (Config, error) {
	switch {
	case c.Store == nil:
		return c, errors.New("blob: Config.Store is missing")
	case c.InlineBytes < 0:
		return c, errors.New("blob: Config.InlineBytes is negative")
	case c.InlineLines < 0:
		return c, errors.New("blob: Config.InlineLines is negative")
	case c.MaxBytes < 0:
		return c, errors.New("blob: Config.MaxBytes is negative")
	case c.MaxCount < 0:
		return c, errors.New("blob: Config.MaxCount is negative")
	case c.MaxAge < 0:
		return c, errors.New("blob: Config.MaxAge is negative")
	}
	c.InlineBytes = cmp.Or(c.InlineBytes, DefaultInlineBytes)
	c.InlineLines = cmp.Or(c.InlineLines, DefaultInlineLines)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.MaxAge = cmp.Or(c.MaxAge, DefaultMaxAge)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Store keeps large texts. Make one with [New].
type Store struct {
	cfg Config

	mu      sync.Mutex
	added   int64     // bytes stored since the last Prune
	pruneAt time.Time // when the next one is due
}

// New makes a Store.
func New(cfg Config) (*Store, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &Store{cfg: cfg}, nil
}

// Put stores a text of a thread, whatever its size, and returns its handle. Label names the source of the text, a tool for
// example. It fails for a text larger than MaxBytes or store.MaxValue.
func (s *Store) Put(ctx context.Context, thread, label, text string) (handle string, err error) {
	size := int64(len(text))
	if most := min(s.cfg.MaxBytes, store.MaxValue); size > most {
		return "", fmt.Errorf("blob: text of %.80q: %d bytes, at most %d are allowed", label, size, most)
	}
	handle = slug(label) + "-" + rand.Text()
	_, err = store.ApplySurely(ctx, s.cfg.Store, store.Batch{Thread: thread, Base: store.AnyRevision, Put: []store.Cell{{
		Kind: cellKind, Key: handle, Value: []byte(text),
		Index: []store.IndexKey{{Name: index, Group: group, Key: place(s.cfg.Now(), size)}},
	}}})
	if err != nil {
		return "", fmt.Errorf("blob: text of %.80q: %w", label, err)
	}
	if s.due(size) {
		if _, _, err := s.Prune(ctx); err != nil {
			s.cfg.Logger.WarnContext(ctx, "old texts could not be deleted", "error", err)
		}
	}
	return handle, nil
}

// Shorten returns text as it is when it is small, and else stores it and returns its beginning, its end and a
// handle. Label names the source of the text.
func (s *Store) Shorten(ctx context.Context, thread, label, text string) string {
	n := lines(text)
	if len(text) <= s.cfg.InlineBytes && n <= s.cfg.InlineLines {
		return text
	}
	handle, err := s.Put(ctx, thread, label, text)
	where := fmt.Sprintf("The whole output is stored as %s. Use the %#q tool with `offset` and `limit` to read parts of it.", handle, ToolReadOutput)
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "a large text could not be stored", "thread_id", thread, "label", label, "bytes", len(text), "error", err)
		where = "The whole output could not be stored, and is lost."
	}
	return fmt.Sprintf("%s\n\n[%s output shortened: %d lines, %d bytes in total. %s]", summary(text, s.cfg.InlineBytes), slug(label), n, len(text), where)
}

// slug makes a label part of a handle.
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
	return cmp.Or(s, "text")
}
