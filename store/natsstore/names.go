package natsstore

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/mortise-dev/mortise/store/internal/state"
)

// names makes subjects. Names of threads, logs and places may have any bytes, so the subjects have hashes of them.
type names struct{ root string }

func token(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// subjects are those of the stream.
func (n names) subjects() []string {
	return append(n.parts(), n.threads(), n.quorum())
}

// parts are what operations refer to.
func (n names) parts() []string { return []string{n.root + ".u.*", n.root + ".p.*", n.root + ".e.>"} }

// threads has the operations of all threads.
func (n names) threads() string { return n.root + ".t.*" }

// thread has the operations of a thread.
func (n names) thread(name string) string { return n.root + ".t." + token(name) }

// pieces has the parts of a thread's operations that are too large for one message.
func (n names) pieces(thread string) string { return n.root + ".p." + token(thread) }

// chunks has the entries of a log that were moved out of operations.
func (n names) chunks(thread, log string) string {
	return n.root + ".e." + token(thread) + "." + token(log)
}

// logs has the chunks of all logs of a thread.
func (n names) logs(thread string) string { return n.root + ".e." + token(thread) + ".*" }

// place has the thread that took a unique place last.
func (n names) place(p state.Place) string { return n.root + ".u." + token(p.Name, p.Group, p.Key) }

// quorum is written to verify a read on a replicated stream.
func (n names) quorum() string { return n.root + ".q" }
