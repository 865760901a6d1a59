package serve

import (
	"net/http"
	"time"
)

// writer bounds the time of each write.
type writer struct {
	http.ResponseWriter

	control *http.ResponseController
	limit   time.Duration
	wrote   bool
}

func newWriter(w http.ResponseWriter, limit time.Duration) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w), limit: limit}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.extend()
	w.wrote = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(data []byte) (int, error) {
	w.extend()
	w.wrote = true
	return w.ResponseWriter.Write(data) //nolint:wrapcheck // it is the writer's
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.flush() }

func (w *writer) flush() error {
	w.extend()
	return w.control.Flush() //nolint:wrapcheck // it is the writer's
}

// extend allows the next write its time. A writer without deadlines, as of tests, has none.
func (w *writer) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(w.limit)) }
