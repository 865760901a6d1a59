package natsstore_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/store"
)

// TestFormat has the bytes of messages: streams that were written must stay readable. Of the envelope only the id of the writer is random.
func TestFormat(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	name := newStream()
	s := open(t, url, name)
	apply(t, s, store.Batch{
		Thread: "t\xff", ID: "i", Base: store.AnyRevision, Drop: true, Delete: []store.Range{store.One("a", "k")},
		Put:    []store.Cell{{Kind: "a", Key: "k", Value: []byte("v"), Index: []store.IndexKey{{Name: "n", Group: "g", Key: "x", Unique: true}}}},
		Trim:   []store.Trim{{Log: "l", Before: 2}},
		Append: []store.Entry{{Log: "l", Data: []byte("e")}}, Notify: []string{"topic"},
	})
	operator := streamOf(t, url, name)
	claim, err := operator.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(claim.Data), "91a274ff"; got != want || !strings.HasPrefix(claim.Subject, name+".u.") {
		t.Errorf("claim of %s: got %s, want %s", claim.Subject, got, want)
	}
	msg, err := operator.GetMsg(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := name + ".t.TAvdULQKFeSRMSLabrpUutQn"; msg.Subject != want {
		t.Errorf("subject %s, want %s", msg.Subject, want)
	}
	got := hex.EncodeToString(msg.Data)
	const writer = 2 + 2*36 // a length and a UUID, in hexadecimal
	const head = "98a274ff01c300d9"
	const body = "c43497a169c39194a161a16ba26b00009194a161a16bc401769194a16ea167a178c39192a16c029193a16c00c4016591a5746f7069630000"
	if i := strings.Index(got, "d9"); i < 0 || got[:i+2] != head {
		t.Fatalf("the envelope begins with %.60s, want %s", got, head)
	}
	if rest := got[len(head)+writer:]; rest != body {
		t.Errorf("the rest is\n%s, want\n%s", rest, body)
	}
}
