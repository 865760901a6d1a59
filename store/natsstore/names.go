package natsstore

import (
	"encoding/base64"
	"strings"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/mailbox"
)

// names makes subjects. Ids are encoded: they may hold anything.
type names struct{ root string }

func token(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) }

func (n names) all() string { return n.root + ".>" }

func (n names) heads() string { return n.root + ".h.*" }

// others are all records but heads.
func (n names) others() []string { return []string{n.root + ".d.*", n.root + ".r.*", n.root + ".x.>"} }

// quorum is written to see that the leader leads.
func (n names) quorum() string { return n.root + ".q" }

// alarm is the record that tells the server when it next has to drop one.
func (n names) alarm() string { return n.root + ".t" }

func (n names) head(thread string) string { return n.root + ".h." + token(thread) }

// threadOf is the thread of a head.
func (n names) threadOf(head string) string {
	return named(strings.TrimPrefix(head, n.root+".h."))
}

// named is the id of a token, empty if it is none.
func named(token string) string {
	id, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return ""
	}
	return string(id)
}

// birth is the record that makes an id taken.
func (n names) birth(kind mailbox.Kind, id string) string {
	if kind == mailbox.KindRun {
		return n.root + ".r." + token(id)
	}
	return n.root + ".d." + token(id)
}

// parts are all records that only the head of a thread refers to.
func (n names) parts(thread string) string { return n.root + ".x." + token(thread) + ".>" }

// part is the name of a new one.
func (n names) part(thread string) string {
	return n.root + ".x." + token(thread) + "." + uuid.NewString()
}

// messages are the records of a message of that id, of which the head knows one at most.
func (n names) messages(thread, id string) string {
	return n.root + ".x." + token(thread) + ".m." + token(id) + ".*"
}

func (n names) message(thread, id string) string {
	return n.root + ".x." + token(thread) + ".m." + token(id) + "." + uuid.NewString()
}

// live is the subject of a run under way.
func (n names) live(t mailbox.Target) string {
	return n.root + "-live." + orNone(t.Thread) + "." + orNone(t.Run) + "." + orNone(t.Dispatch)
}

func orNone(id string) string {
	if id == "" {
		return "_"
	}
	return token(id)
}
