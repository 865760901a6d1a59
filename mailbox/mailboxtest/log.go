package mailboxtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func logCases() []testCase {
	return []testCase{
		{"commit_appends_by_expected_count", commitAppends},
		{"commit_replaces_by_place_and_id", commitReplaces},
		{"commit_is_whole_or_nothing", commitWhole},
		{"image_data_and_result", imageAndData},
	}
}

func (w *world) log(thread string, from, limit int) []string {
	w.t.Helper()
	list, err := w.mail.Messages(w.ctx(), thread, from, limit)
	must(w.t, err)
	var out []string
	for _, m := range list {
		out = append(out, fmt.Sprintf("%d:%s=%s", m.Seq, m.ID, m.Data))
	}
	return out
}

func message(id, text string) mailbox.Message {
	return mailbox.Message{ID: id, Run: "run-d1", Data: []byte(text)}
}

func commitAppends(w *world) {
	x := w.manual().begin("t", "d1")
	must(w.t, x.commit(mailbox.Commit{ID: "c1", Append: []mailbox.Message{message("m1", "a"), message("m2", "b")}}))
	for range 2 { // the second time it is there
		must(w.t, x.commit(mailbox.Commit{ID: "c2", From: 2, Append: []mailbox.Message{message("m3", "c")}}))
	}
	for _, from := range []int{0, 2, 4} {
		err := x.commit(mailbox.Commit{ID: fmt.Sprintf("bad%d", from), From: from, Append: []mailbox.Message{message("m4", "x")}})
		if want := fmt.Sprintf("expected %d, actual 3", from); !errors.Is(err, mailbox.ErrConflict) || !strings.Contains(err.Error(), want) {
			w.t.Errorf("commit that follows %d of 3: %v", from, err)
		}
	}
	same(w.t, "log", w.log("t", 1, 10), "1:m1=a", "2:m2=b", "3:m3=c")
	same(w.t, "page", w.log("t", 2, 1), "2:m2=b")
	same(w.t, "page after the end", w.log("t", 4, 10))
	same(w.t, "log of an unknown thread", w.log("unknown", 1, 10))
	list, err := w.mail.Messages(w.ctx(), "t", 1, 1)
	must(w.t, err)
	equal(w.t, "run", list[0].Run, "run-d1")
	equal(w.t, "time", list[0].At, w.clock.Now())
	equal(w.t, "length", w.record("t").Messages, 3)
}

func commitReplaces(w *world) {
	x := w.manual().begin("t", "d1")
	must(w.t, x.commit(mailbox.Commit{ID: "c1", Append: []mailbox.Message{message("m1", "a"), message("m2", "b")}}))
	first := message("m1", "A")
	first.Seq = 1
	must(w.t, x.commit(mailbox.Commit{ID: "c2", From: 2, Replace: []mailbox.Message{first}, Append: []mailbox.Message{message("m3", "c")}}))
	want := []string{"1:m1=A", "2:m2=b", "3:m3=c"}
	same(w.t, "log", w.log("t", 1, 10), want...)
	wrong := message("m2", "x")
	wrong.Seq = 1
	if err := x.commit(mailbox.Commit{ID: "c3", From: 3, Replace: []mailbox.Message{wrong}}); !errors.Is(err, mailbox.ErrConflict) {
		w.t.Errorf("another message at the place: %v", err)
	}
	wrong.Seq = 4
	if err := x.commit(mailbox.Commit{ID: "c4", From: 3, Replace: []mailbox.Message{wrong}}); !errors.Is(err, mailbox.ErrInvalid) {
		w.t.Errorf("a place that is not there: %v", err)
	}
	same(w.t, "log", w.log("t", 1, 10), want...)
}

func commitWhole(w *world) {
	x := w.manual().begin("t", "d1")
	must(w.t, x.commit(mailbox.Commit{ID: "c1", Append: []mailbox.Message{message("m1", "a")}}))
	err := x.commit(mailbox.Commit{
		ID: "an id twice", From: 1, Append: []mailbox.Message{message("m3", "b"), message("m3", "c")}, Data: []byte("x"), Image: []byte("x"),
		Result: mailbox.Result{Status: mailbox.RunDone},
	})
	if !errors.Is(err, mailbox.ErrConflict) {
		w.t.Errorf("an id twice: %v", err)
	}
	same(w.t, "log", w.log("t", 1, 10), "1:m1=a")
	equal(w.t, "status of the run", w.run("run-d1").Status, mailbox.RunRunning)
	equal(w.t, "image", len(w.image("t")), 0)
}

func imageAndData(w *world) {
	binary := string([]byte{0, 255, 10, 13})
	m := w.manual()
	x := m.begin("t", "d1")
	d, r := w.load("d1"), w.run("run-d1")
	equal(w.t, "run status of the dispatch", d.RunStatus, mailbox.RunRunning)
	equal(w.t, "session of the run", r.Session, d.Instance)
	equal(w.t, "start of the run", r.StartedAt, w.clock.Now())
	must(w.t, x.commit(mailbox.Commit{ID: "c1", Image: []byte(binary), Data: []byte("data" + binary)}))
	must(w.t, x.commit(mailbox.Commit{ID: "c2"}))
	equal(w.t, "image", string(w.image("t")), binary)
	equal(w.t, "data", string(w.run("run-d1").Data), "data"+binary)
	w.image("t")[0] = 'x'
	equal(w.t, "image after a copy was written to", string(w.image("t")), binary)
	w.clock.Add(time.Second)
	d, r = m.finish(x, mailbox.Result{Termination: "natural", Response: "hello ☃"}, nil), w.run("run-d1")
	equal(w.t, "what the dispatch came to", [3]string{string(d.RunStatus), d.Termination, d.Response}, [3]string{"done", "natural", "hello ☃"})
	equal(w.t, "what the run came to", [2]string{string(r.Status), r.Response}, [2]string{"done", "hello ☃"})
	equal(w.t, "end of the run", r.FinishedAt, w.clock.Now())
	equal(w.t, "latest run", w.record("t").Latest.Status, mailbox.RunDone)
}

func (w *world) image(thread string) []byte {
	w.t.Helper()
	image, err := w.mail.Image(w.ctx(), thread)
	must(w.t, err)
	return image
}
