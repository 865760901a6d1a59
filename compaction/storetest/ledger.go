package storetest

import (
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// ledgers checks a store that keeps ledgers too.
func ledgers(t *testing.T, s compaction.Store, again func() compaction.Store) {
	t.Helper()
	store, ok := s.(compaction.LedgerStore)
	if !ok {
		return
	}
	is := func(s compaction.LedgerStore, thread string, want compaction.StoredLedger) {
		t.Helper()
		if got, err := s.LoadLedger(thread); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", thread, got, err, want)
		}
	}
	is(store, "t", compaction.StoredLedger{})
	first := compaction.StoredLedger{Messages: 3, Sum: 1<<64 - 1, State: abi.Ledger{
		Version: abi.LedgerVersion, Messages: 3, Bytes: 17, Folder: "/src",
		Talk: abi.LedgerTalk{Requests: []abi.LedgerRequest{{Message: 1, Text: "</x>\n\"é\u2028", Question: &abi.LedgerText{Message: 2, Text: "?"}}}},
	}}
	second := first
	second.Messages, second.State.Branch = 9, "main"
	for _, l := range []compaction.StoredLedger{first, second} {
		if err := store.SaveLedger("t", l); err != nil {
			t.Fatal(err)
		}
		is(store, "t", l)
	}
	reopened, ok := again().(compaction.LedgerStore)
	if !ok {
		t.Fatal("the store keeps no ledgers when it is opened again")
	}
	is(reopened, "t", second)
	is(store, "u", compaction.StoredLedger{})
	if state, rev, err := s.Load("t"); err != nil || rev != 0 || !reflect.DeepEqual(state, compaction.State{}) {
		t.Errorf("a ledger changed the state: %+v, %d, %v", state, rev, err)
	}
}
