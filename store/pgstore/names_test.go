package pgstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// PostgreSQL's text has no NUL, and no bytes that are not UTF-8: what a model or an error says may
// have both.
func TestStore_anyText(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	odd := "a\x00b\x01c\x01\x01d\x02"
	put := func(text string) mailbox.State {
		t.Helper()
		h := mailbox.Head{Thread: odd, Claim: &mailbox.Claim{Dispatch: odd, Stop: text}, Latest: mailbox.RunRef{ID: odd, Wait: text}, Messages: 1}
		d := mailbox.Dispatch{ID: odd, Thread: odd, RunID: odd, Status: mailbox.Queued, Dedupe: odd, LastError: text, Response: text, RunError: text}
		r := mailbox.Run{ID: odd, Thread: odd, Output: text, Error: text, Input: []string{odd, "", "x"}}
		m := mailbox.Message{Seq: 1, ID: odd, Run: odd, Data: []byte(text)}
		err := s.Update(t.Context(), odd, mailbox.Need{}, func(mailbox.State) (mailbox.Change, error) {
			return mailbox.Change{Head: &h, Dispatches: []mailbox.Dispatch{d}, Runs: []mailbox.Run{r}, Messages: []mailbox.Message{m}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Load(t.Context(), odd, mailbox.Need{Dispatches: []string{odd}, Runs: []string{odd}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for text, want := range map[string]string{odd: odd, "half \xff\xfe": "half \uFFFD"} {
		got := put(text)
		d, r := got.Dispatches[odd], got.Runs[odd]
		for _, found := range []string{got.Head.Claim.Stop, got.Head.Latest.Wait, d.LastError, d.Response, d.RunError, r.Output, r.Error} {
			if found != want {
				t.Errorf("%q came back as %q", text, found)
			}
		}
		if d.Dedupe != odd || len(r.Input) != 3 || r.Input[0] != odd {
			t.Errorf("names came back as %q, %q", d.Dedupe, r.Input)
		}
	}
	list, err := s.Messages(t.Context(), odd, 1, 10)
	if err != nil || len(list) != 1 || list[0].ID != odd || list[0].Run != odd {
		t.Errorf("messages: %+v, %v", list, err)
	}
}

// Names with NUL keep their place among the others.
func TestStore_orderOfNames(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	want := []string{"\x00", "\x00\x01", "\x01", "\x01\x00", "\x01\x02", "\x02", "A", "a", "a\x00", "a\x01", "a\x02", "aa", "ä"}
	for _, thread := range want {
		err := s.Update(t.Context(), thread, mailbox.Need{}, func(st mailbox.State) (mailbox.Change, error) {
			return mailbox.Change{Head: &st.Head}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for after := ""; ; {
		page, err := s.Threads(t.Context(), mailbox.ThreadQuery{After: after, Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			got = append(got, page[i].Thread)
		}
		after = got[len(got)-1]
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("order %q, want %q", got, want)
	}
}

// The engine keeps two claims of a thread apart, whatever the program says.
func TestStore_oneClaim(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	put := func(list ...mailbox.Dispatch) error {
		return s.Update(t.Context(), "t", mailbox.Need{}, func(st mailbox.State) (mailbox.Change, error) {
			return mailbox.Change{Head: &st.Head, Dispatches: list}, nil
		})
	}
	at := func(id string, status mailbox.Status) mailbox.Dispatch {
		return mailbox.Dispatch{ID: id, Thread: "t", Status: status, Dedupe: "k", UpdatedAt: time.UnixMilli(1)}
	}
	if err := put(at("d1", mailbox.Claimed)); err != nil {
		t.Fatal(err)
	}
	second := at("d2", mailbox.Claimed)
	second.Dedupe = ""
	if err := put(second); !errors.Is(err, mailbox.ErrConflict) {
		t.Errorf("a second claim: %v", err)
	}
	// One that takes a claim and a key over in the same change may.
	if err := put(at("d2", mailbox.Claimed), at("d1", mailbox.Acked)); err != nil {
		t.Errorf("a claim that was handed over: %v", err)
	}
}
