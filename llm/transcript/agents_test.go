package transcript_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/llm/transcript"
)

// TestAgents reads the sessions of other agents. The files are made from the
// formats' sources; what is expected is in a file next to each, which
// UPDATE=1 writes.
func TestAgents(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]transcript.Format{
		"codex.jsonl": transcript.FormatCodex, "codex_old.jsonl": transcript.FormatCodex,
		"responses.json": transcript.FormatResponses, "responses_items.json": transcript.FormatResponses,
		"gemini_cli.json": transcript.FormatGeminiCLI, "gemini_cli.jsonl": transcript.FormatGeminiCLI, "gemini.json": transcript.FormatGemini,
		"opencode.json": transcript.FormatOpenCode, "openhands.json": transcript.FormatOpenHands, "openhands_v1.jsonl": transcript.FormatOpenHands,
		"goose.jsonl": transcript.FormatGoose, "goose_export.json": transcript.FormatGoose, "swe_agent.json": transcript.FormatSWEAgent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", name)
			file, err := transcript.Open(path, transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if file.Format != format || len(file.Conversations) != 1 {
				t.Errorf("format %s, %d conversations, want %s and 1", file.Format, len(file.Conversations), format)
			}
			if err := file.Conversations[0].Validate(); err != nil {
				t.Error(err)
			}
			got := render(file) + renderCompactions(&file.Conversations[0])
			golden := path + ".golden"
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
