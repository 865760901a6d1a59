package mailboxtest

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/queue"
)

func logCases() []testCase {
	return []testCase{
		{"commit_appends_by_expected_count", commitAppends},
		{"commit_twice_is_once", commitTwice},
		{"commit_replaces_by_place_and_id", commitReplaces},
		{"commit_is_whole_or_nothing", commitWhole},
		{"image_and_data", imageAndData},
	}
}

func (w *world) log(thread string, from, limit int) []string {
	w.t.Helper()
	list, err := w.queue.Messages(w.ctx(), thread, from, limit)
	must(w.t, err)
	var out []string
	for _, m := range list {
		out = append(out, fmt.Sprintf("%d:%s=%s", m.Seq, m.ID, m.Data))
	}
	return out
}

func message(id, text string) queue.Message {
	return queue.Message{ID: id, Run: "run-d1", Data: []byte(text)}
}

func commitAppends(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c1", Append: []queue.Message{message("m1", "a"), message("m2", "b")}}))
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c2", From: 2, Append: []queue.Message{message("m3", "c")}}))
	for _, from := range []int{0, 2, 4} {
		err := w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: fmt.Sprintf("bad%d", from), From: from, Append: []queue.Message{message("m4", "x")}})
		var conflict *queue.ConflictError
		if !errors.As(err, &conflict) || *conflict != (queue.ConflictError{Expected: uint64(from), Actual: 3}) { //nolint:gosec // a small number
			w.t.Errorf("commit that follows %d of 3: %v", from, err)
		}
	}
	same(w.t, "log", w.log("t", 1, 10), "1:m1=a", "2:m2=b", "3:m3=c")
	same(w.t, "page", w.log("t", 2, 1), "2:m2=b")
	same(w.t, "page after the end", w.log("t", 4, 10))
	same(w.t, "log of an unknown thread", w.log("unknown", 1, 10))
	list, err := w.queue.Messages(w.ctx(), "t", 1, 1)
	must(w.t, err)
	equal(w.t, "run", list[0].Run, "run-d1")
	equal(w.t, "time", list[0].At, w.clock.Now())
	equal(w.t, "length", w.record("t").Messages, 3)
}

func commitTwice(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	c := queue.Commit{ID: "c1", Append: []queue.Message{message("m1", "a")}}
	must(w.t, w.queue.Commit(w.ctx(), hold(k), c))
	must(w.t, w.queue.Commit(w.ctx(), hold(k), c))
	same(w.t, "log", w.log("t", 1, 10), "1:m1=a")
}

func commitReplaces(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c1", Append: []queue.Message{message("m1", "a"), message("m2", "b")}}))
	first := message("m1", "A")
	first.Seq = 1
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c2", From: 2, Replace: []queue.Message{first}, Append: []queue.Message{message("m3", "c")}}))
	want := []string{"1:m1=A", "2:m2=b", "3:m3=c"}
	same(w.t, "log", w.log("t", 1, 10), want...)
	wrong := message("m2", "x")
	wrong.Seq = 1
	if err := w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c3", From: 3, Replace: []queue.Message{wrong}}); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("another message at the place: %v", err)
	}
	wrong.Seq = 4
	if err := w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c4", From: 3, Replace: []queue.Message{wrong}}); !errors.Is(err, queue.ErrInvalid) {
		w.t.Errorf("a place that is not there: %v", err)
	}
	same(w.t, "log", w.log("t", 1, 10), want...)
}

func commitWhole(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c1", Append: []queue.Message{message("m1", "a")}}))
	for name, list := range map[string][]queue.Message{
		"an id twice": {message("m3", "b"), message("m3", "c")},
	} {
		err := w.queue.Commit(w.ctx(), hold(k), queue.Commit{
			ID: name, From: 1, Append: list, Data: []byte("x"), Image: []byte("x"), Result: queue.Result{Status: queue.RunDone},
		})
		if !errors.Is(err, queue.ErrConflict) {
			w.t.Errorf("%s: %v", name, err)
		}
	}
	same(w.t, "log", w.log("t", 1, 10), "1:m1=a")
	equal(w.t, "status of the run", w.run("run-d1").Status, queue.RunRunning)
	equal(w.t, "image", len(w.image("t")), 0)
}

func imageAndData(w *world) {
	binary := string([]byte{0, 255, 10, 13})
	w.enqueue("t", "d1")
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c1", Image: []byte(binary), Data: []byte("data" + binary)}))
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c2"}))
	equal(w.t, "image", string(w.image("t")), binary)
	equal(w.t, "data", string(w.run("run-d1").Data), "data"+binary)
	w.image("t")[0] = 'x'
	equal(w.t, "image after a copy was written to", string(w.image("t")), binary)
}

func (w *world) image(thread string) []byte {
	w.t.Helper()
	_, image, err := w.queue.Image(w.ctx(), thread)
	must(w.t, err)
	return image
}
