package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	beChild()
	goleak.VerifyTestMain(m)
}

// TestStory runs what make demo shows, and checks what it says.
func TestStory(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out strings.Builder
	if err := tell(ctx, &out, "../.."); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text := out.String()
	last := 0
	for _, want := range []string{ // in this order
		`THE MODEL IS SCRIPTED`,
		`step 1: mcp__files__read docs/config.md part 0: success`,
		`compaction_started    the policy summarizes \d+ messages of \d+ tokens in the background; the run continues`,
		`settled               natural: I have read docs/config.md`,
		`step 1: mcp__files__read docs/http.md`,
		`--data-binary @README.md \$ADMIN/v1/policies/summarizer\n     422 .*is not WebAssembly.*stays`,
		`--data-binary @fixed.wasm \$ADMIN/v1/policies/summarizer\n     422 .*trial: it loses more.*stays`,
		`--data-binary @build-2.wasm \$ADMIN/v1/policies/summarizer\n     200 .*"trial"`,
		`POST \$ADMIN/v1/policies/summarizer/rollback\n     200 `,
		`settled               natural: I have read docs/conformance.md`,
		`has answered 30 requests`,
	} {
		at := regexp.MustCompile(want).FindStringIndex(text[last:])
		if at == nil {
			t.Fatalf("no %q after byte %d of\n%s", want, last, text)
		}
		last += at[1]
	}
	swapped := regexp.MustCompile(`compaction_swapped    through the inbox after \S+: \d+ -> \d+ tokens; (\d+) %`).FindAllStringSubmatchIndex(text, -1)
	for _, m := range swapped {
		if text[m[2]:m[3]] == "0" {
			t.Errorf("nothing survived a compaction:\n%s", text)
		}
	}
	if len(swapped) < 2 {
		t.Errorf("%d compactions were swapped in:\n%s", len(swapped), text)
	}
	for _, never := range []string{"compaction_failed", "compaction_refused"} {
		if strings.Contains(text, never) {
			t.Errorf("there is a %s in\n%s", never, text)
		}
	}
}
