package mailboxtest_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// broken is a store with one fault in many of its answers.
type broken struct {
	*memstore.Store

	count atomic.Int64
	// batch changes what is written, refs what is listed of an index, counts what is counted of one.
	batch  func(*store.Batch)
	refs   func(index string, list []store.Ref) []store.Ref
	counts func(index string, groups map[string]int)
}

func (b *broken) Apply(ctx context.Context, batch store.Batch) (uint64, error) {
	if b.batch != nil && b.count.Add(1)%10 == 0 {
		b.batch(&batch)
	}
	return b.Store.Apply(ctx, batch)
}

func (b *broken) Scan(ctx context.Context, s store.Scan) ([]store.Ref, error) {
	list, err := b.Store.Scan(ctx, s)
	if b.refs != nil {
		list = b.refs(s.Index, list)
	}
	return list, err
}

func (b *broken) Count(ctx context.Context, index string) (map[string]int, error) {
	groups, err := b.Store.Count(ctx, index)
	if b.counts != nil {
		b.counts(index, groups)
	}
	return groups, err
}

// without drops the cells of a kind from a batch.
func without(kind string) func(*store.Batch) {
	return func(b *store.Batch) {
		b.Put = slices.DeleteFunc(slices.Clone(b.Put), func(c store.Cell) bool { return c.Kind == kind })
	}
}

// fewer drops the first cell of an index from a listing.
func fewer(index string) func(string, []store.Ref) []store.Ref {
	return func(of string, list []store.Ref) []store.Ref {
		if of == index && len(list) > 1 {
			return list[1:]
		}
		return list
	}
}

// TestModel holds also that what one process remembers does not count when another one has written since.
func TestModel(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(*testing.T) (one, other store.Store) {
		s := memstore.New()
		return s, s
	}, testskip.Rounds(1000, 200))
}

// TestModel_finds holds that the model finds faults, and none where there is none.
func TestModel_finds(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	for name, c := range map[string]struct {
		broken *broken
		want   string
	}{
		"nothing":         {&broken{}, ""},
		"a lost write":    {&broken{batch: func(b *store.Batch) { b.Put, b.Append, b.Delete, b.Drop = nil, nil, nil, false }}, "step"},
		"a lost record":   {&broken{batch: without("thread")}, "step"},
		"a lost dispatch": {&broken{batch: without("dispatch")}, "step"},
		"a lost run":      {&broken{batch: without("run")}, "step"},
		"a lost place":    {&broken{batch: without("queue")}, "step"},
		"another message": {&broken{batch: func(b *store.Batch) {
			for i := range b.Append {
				data := bytes.Clone(b.Append[i].Data)
				if at := bytes.Index(data, []byte("\xa2id")) + 4; at > 4 && data[at] == 'n' { // a map of MessagePack, with the key id
					data[at] = 'x'
				}
				b.Append[i].Data = data
			}
		}}, "the log is"},
		"a longer queue":                {&broken{batch: func(b *store.Batch) { b.Delete = nil }}, "step"},
		"a thread that is not listed":   {&broken{refs: fewer("thread")}, "threads: "},
		"a thread that is not due":      {&broken{refs: fewer("later")}, "poll"},
		"a dispatch that is not listed": {&broken{refs: fewer("status")}, "dispatches listed as"},
		"a count too many": {&broken{counts: func(index string, groups map[string]int) {
			if index == "status" {
				groups["acked"]++
			}
		}}, "dispatches counted as acked"},
		"a claim that is not counted": {&broken{counts: func(index string, groups map[string]int) {
			if index == "claim" {
				for tenant := range groups {
					groups[tenant]--
				}
			}
		}}, "claims counted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.broken.Store = memstore.New()
			got := mailboxtest.Trouble(t.Context(), c.broken, 200)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the model returned %.2000q, want %q", got, c.want)
			}
		})
	}
}
