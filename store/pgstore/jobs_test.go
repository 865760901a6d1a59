package pgstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func opened(b *testing.B) store.Store {
	b.Helper()
	return open(b, config(b))
}

func BenchmarkCycle(b *testing.B) { viewtest.BenchmarkCycle(b, opened) }

func BenchmarkBacklog(b *testing.B) { viewtest.BenchmarkBacklog(b, opened) }
