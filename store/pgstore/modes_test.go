package pgstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/storetest"
)

// TestModes holds that each way of pgx to execute statements that a URL asks for works.
func TestModes(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := config(t)
			c.URL += "&default_query_exec_mode=" + mode
			s := open(t, c)
			storetest.TestModel(t, func(*testing.T) (_, _ store.Store) { return s, s }, 3)
			name := strings.Repeat("\x00\xff'\\\"{},", 40)
			index := []store.IndexKey{{Name: name, Group: name, Key: name, Unique: true}}
			b := put(name, 0, store.Cell{Kind: name, Key: name, Value: []byte(name), Index: index})
			b.Append = []store.Entry{{Log: name, Data: []byte(name)}}
			b.Notify = []string{name}
			if _, err := s.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			q := store.Query{Cells: []store.Range{store.All(name)}, Entries: []store.Span{{Log: name, Limit: 1}}}
			out, err := s.Read(t.Context(), name, q)
			if err != nil || len(out.Cells)*len(out.Entries) != 1 || string(out.Cells[0].Value)+string(out.Entries[0].Data) != name+name {
				t.Errorf("got %+v, %v", out, err)
			}
			list, err := s.Scan(t.Context(), store.Scan{Index: name, Group: name, Limit: 2, Values: true})
			if err != nil || len(list) != 1 || list[0].Thread+list[0].Kind+list[0].Key+string(list[0].Value) != strings.Repeat(name, 4) {
				t.Errorf("scan: %+v, %v", list, err)
			}
			e := store.EventBatch{Stream: name, Fence: 1, First: 1, Last: 2, At: time.Now(), Data: []byte(name)}
			if _, err := s.AppendEvents(t.Context(), e); err != nil {
				t.Error(err)
			}
			if err := s.DropEvents(t.Context(), name); err != nil {
				t.Error(err)
			}
			if _, err := s.Time(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
