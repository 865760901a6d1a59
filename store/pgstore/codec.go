package pgstore

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// PostgreSQL's text has no NUL. Names and texts are written with NUL as 01 01 and 01 as 01 02, which
// keeps their order.
func name(s string) string {
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, 1) < 0 {
		return s
	}
	return strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02").Replace(s)
}

func named(s string) string {
	if strings.IndexByte(s, 1) < 0 {
		return s
	}
	return strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01").Replace(s)
}

// text is a name that nobody looks up: what is not UTF-8 in it is replaced, so that an
// error message cannot keep a transition from being written.
func text(s string) string { return name(strings.ToValidUTF8(s, "\uFFFD")) }

func names(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, name(s))
	}
	return out
}

// textTo scans text into a string.
type textTo struct{ s *string }

// ScanText implements pgtype.TextScanner. NULL is empty.
func (t textTo) ScanText(v pgtype.Text) error {
	*t.s = named(v.String)
	return nil
}

// millis writes a time. The zero time is NULL.
func millis(t time.Time) pgtype.Int8 { return pgtype.Int8{Int64: t.UnixMilli(), Valid: !t.IsZero()} }

// millisTo scans a time.
type millisTo struct{ t *time.Time }

// ScanInt64 implements pgtype.Int64Scanner.
func (m millisTo) ScanInt64(v pgtype.Int8) error {
	*m.t = time.Time{}
	if v.Valid {
		*m.t = time.UnixMilli(v.Int64).UTC()
	}
	return nil
}
