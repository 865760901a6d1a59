package recordstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
)

// BenchmarkAdd compares what a hook waits for: a folder, and the file.
func BenchmarkAdd(b *testing.B) {
	open := map[string]func(b *testing.B) record.Store{
		"folder": func(b *testing.B) record.Store {
			b.Helper()
			f, err := record.Open(b.TempDir(), record.Config{RunBytes: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			return f
		},
		"sqlite": func(b *testing.B) record.Store {
			b.Helper()
			file, err := sqlitestore.Open(b.Context(), sqlitestore.Config{Path: filepath.Join(b.TempDir(), "mortise.db")})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = file.Close(context.Background()) })
			s, err := recordstore.New(b.Context(), file, record.Config{RunBytes: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	}
	for _, name := range []string{"folder", "sqlite"} {
		b.Run(name, func(b *testing.B) {
			s := open[name](b)
			defer s.Close()
			if err := s.Start(record.Start{Run: abi.RunIdentity{RunID: "r"}}); err != nil {
				b.Fatal(err)
			}
			e := record.Entry{Phase: abi.ToolGate, Plugin: "guard", CallID: "c", Tool: "bash", Gate: &record.Gate{Action: abi.GateAllow}}
			b.ResetTimer()
			for b.Loop() {
				if err := s.Add("r", e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
