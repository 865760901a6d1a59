package cli_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/thread"
)

// TestUndoAfterRetention: the error names what dropped the messages, and the key of the config.
func TestUndoAfterRetention(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kept.db")
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	log := abi.Message{ID: "m", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("hello")}}
	state := compaction.State{Total: 1, Forgot: true, Dropped: 7, Markers: []compaction.Marker{{ID: "c1", FromID: log.ID, ToID: log.ID}}}
	_, err = thread.On(file).Commit(t.Context(), "t", thread.Commit{Append: []abi.Message{log}, State: &state})
	if err != nil {
		t.Fatal(err)
	}
	file.Close(context.WithoutCancel(t.Context()))
	code, _, stderr := mortise(t.Context(), "", "compact", "undo", path)
	if code != exit.Usage || !strings.Contains(stderr, "retention has dropped the content of 7 messages") || !strings.Contains(stderr, "serve.retention.messages") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
