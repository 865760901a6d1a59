package compaction_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/summarizers/bundled"
)

// A program with a loop of its own compacts its list of messages with the bundled policy "ledger". With
// Options.Summarizer nil no module is needed.
func ExampleCompact() {
	ctx, say := context.Background(), func(s string) []abi.ContentBlock { return []abi.ContentBlock{abi.Text(s)} }
	messages := []abi.Message{
		{Role: abi.RoleUser, Content: say("The build of /srv/app/main.go fails.")},
		{Role: abi.RoleAssistant, Content: say(strings.Repeat("I read /srv/app/main.go, and then some more of it. ", 900))},
		{Role: abi.RoleUser, Content: say("Fix it.")},
	}
	h := expect(host.New(host.Config{CacheDir: filepath.Join(expect(os.UserCacheDir()), "mortise-test")}))
	defer h.Close(ctx)
	policy := compaction.Policy{KeepRecentTokens: 1, KeepRecentMessages: 1} // what is 0 has its default
	c := expect(compaction.Compact(ctx, messages, compaction.Options{Policy: policy, Summarizer: expect(bundled.Open(ctx, h, "ledger"))}))
	fmt.Println(len(c.Messages), c.Policy, c.PostTokens < c.PreTokens/10, "paths", c.Quality.Paths, "lost", c.Lost)
	// Output: 2 summarizers/ledger true paths {1 1} lost []
}

// expect is for examples: a program handles its errors.
func expect[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
