package sessionstore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

// BenchmarkStore compares what a step waits for: a folder, whose lines are not flushed, and the file, whose
// messages are. Both flush a state.
func BenchmarkStore(b *testing.B) {
	open := map[string]func(b *testing.B) session.Store{
		"folder": func(b *testing.B) session.Store {
			b.Helper()
			d, err := session.Create(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			return d
		},
		"sqlite": func(b *testing.B) session.Store {
			b.Helper()
			file, err := sqlitestore.Open(b.Context(), sqlitestore.Config{Path: filepath.Join(b.TempDir(), "mortise.db")})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = file.Close(context.Background()) })
			s, err := sessionstore.New(b.Context(), file)
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	}
	for _, name := range []string{"folder", "sqlite"} {
		b.Run("append/"+name, func(b *testing.B) {
			s := open[name](b)
			defer s.Close()
			text := abi.Text(strings.Repeat("x", 1000))
			for n := 0; b.Loop(); n++ {
				if err := s.Append("t", abi.Message{ID: fmt.Sprint(n), Role: abi.RoleUser, Content: []abi.ContentBlock{text}}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("swap/"+name, func(b *testing.B) {
			s := open[name](b)
			defer s.Close()
			for rev := uint64(0); b.Loop(); {
				var err error
				if rev, err = s.Swap("t", rev, compaction.State{Total: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("log of 1000/"+name, func(b *testing.B) {
			s := open[name](b)
			defer s.Close()
			messages := make([]abi.Message, 1000)
			for i := range messages {
				messages[i] = abi.Message{ID: fmt.Sprint(i), Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(strings.Repeat("x", 1000))}}
			}
			if err := s.Append("t", messages...); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for b.Loop() {
				if _, err := s.Log("t"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
