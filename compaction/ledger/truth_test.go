package ledger_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/ledger"
)

// TestSumsBehindHead: the last line of a linter that found nothing counts also where head shows it, a line of one test does not.
func TestSumsBehindHead(t *testing.T) {
	t.Parallel()
	fail := func() *story {
		return (&story{}).user("lint it").edit("/w/a.go").failed("Bash", map[string]any{"command": "mise run lint"}, "Exit code 1\na.go:1:2: unused (unused)\n1 issues:")
	}
	lacks(t, fail().edit("/w/a.go").bash("mise run lint 2>&1 | head -30", "[lint] $ golangci-lint run ./...\n0 issues.").render(8000), "## Open")
	for shown, at := range map[string]string{"0 issues.\na.go:3:4: broken (vet)": "m9", "ok  \texample.com/a\t0.1s": "m5"} {
		has(t, fail().edit("/w/a.go").bash("mise run lint 2>&1 | head -30", shown).render(8000), "## Open\n- failed at "+at+", not seen to pass since: `mise run lint`")
	}
}

// TestChecksBeforeChanges: a check that passed before the latest change of a file says so.
func TestChecksBeforeChanges(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("go").edit("/w/a.go").bash("make test", "").edit("/w/b.go").bash("make lint", "").call("Write", map[string]any{"file_path": "/w/try.sh", "content": "x"}, "File created successfully at: /w/try.sh").bash("rm /w/try.sh", "")
	text := s.render(20000)
	has(t, part(text, "Commands"), "`make test` ok, before the latest changes", "`make lint` ok\n")
	back, _ := ledger.ReadBack(text)
	if c := back.Work.Commands; len(c) != 3 || c[0].Outcome != "ok" || c[0].Key != "make test" {
		t.Errorf("read back as %+v", c)
	}
}

// TestUserTakesBack: what the user said to what was done is shown below it where that takes it back.
func TestUserTakesBack(t *testing.T) {
	t.Parallel()
	for answer, taken := range map[string]bool{
		"you broke the header, i undid your changes": true, "no, leave it as it was": true, "thanks, and now write the documents": false, "now the footer": false,
	} {
		text := (&story{}).user("port the header").edit("/w/header.ts").agent("The header is ported to the new pattern.").user(answer).edit("/w/b.ts").agent("It is done there as well.").render(8000)
		want := "  → the agent at m4: “The header is ported to the new pattern.”\n  → the user at m5: “" + answer + "”\n"
		if strings.Contains(part(text, "Goal"), want) != taken {
			t.Errorf("%q: %s", answer, text)
		}
		back, _ := ledger.ReadBack(text)
		if got := back.Talk.Requests[0].Outcome; got == nil || got.Text != "The header is ported to the new pattern." {
			t.Errorf("%q: read back as %+v", answer, got)
		}
	}
}

// TestSlashCommands: a command of the agent's program that begins work is a request, so that what is stopped later is not the
// request before it. What the program writes behind a plan is not the user's.
func TestSlashCommands(t *testing.T) {
	t.Parallel()
	began := (&story{}).user("<command-name>/init</command-name>").read("/w/a.go").user("describe the queue").edit("/w/q.md").user("and the store").edit("/w/s.md").render(8000)
	has(t, part(began, "Goal"), "- First request, m4: “describe the queue”")
	has(t, part(began, "Requests and what became of them"), "- m1 “/init”")
	const review = "<command-message>review</command-message>\n<command-name>/review</command-name>"
	text := (&story{}).user("commit please").bash("git commit -m x", "[main 1a2b3c4] x").agent("It is committed as 1a2b3c4.").user(review).read("/w/a.go").user("look at b.go first").read("/w/b.go").render(8000)
	has(t, part(text, "Open"), "- stopped at m8: request m5 “/review”")
	lacks(t, text, "request m1")
	plan := (&story{}).user("Implement the following plan:\n\n# Retry\n\nRetry three times.\n\n\nIf you need specific details from before exiting plan mode (like code), read the full transcript at: /home/u/.log.jsonl").edit("/w/a.go").render(8000)
	lacks(t, plan, "If you need specific details")
	has(t, part(plan, "Goal"), "Retry three times.”\n")
}

// TestRefusedCall: a request is not stopped when the user refused one call of it and the agent continued.
func TestRefusedCall(t *testing.T) {
	t.Parallel()
	const refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nread the issue first"
	begun := func() *story {
		return (&story{}).user("write a comment").failed("Bash", map[string]any{"command": "gh pr comment 172 --body x"}, refusal)
	}
	has(t, begun().render(8000), "## Open\n- stopped at m3: request m1 “write a comment”")
	text := begun().bash("gh issue view 250", "open").bash("gh pr comment 172 --body y", "https://example.com/172").agent("The comment is posted on the request.").render(8000)
	lacks(t, text, "## Open", "stopped at")
	has(t, part(text, "Goal"), "a call was refused at m3", "“The comment is posted on the request.”")
}

// TestPublished: what others see already is listed before other commands, and commands that only read are not.
func TestPublished(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("release it").edit("/w/a.go")
	for range 9 {
		s.bash("make test", "").bash("cat /w/a.go", "package a")
	}
	s.bash("git push origin main --tags", "To example.com:x.git")
	for range 9 {
		s.bash("make build", "")
	}
	commands := part(s.render(6000), "Commands")
	if !strings.HasPrefix(commands, "- m40 `git push origin main --tags` ok") || strings.Contains(commands, "cat ") {
		t.Errorf("%s", commands)
	}
}

// TestSmallPageOfNames: on a page of a hundredth of what was read what is open and the latest step stand, too.
func TestSmallPageOfNames(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("fix the queue")
	for range 60 {
		s.read("/w/internal/queue/queue_of_messages.go").call("Read", map[string]any{"file_path": "/w/b.go"}, strings.Repeat("identifierOne identifierTwo valueOfThree ", 120))
	}
	s.failed("Bash", map[string]any{"command": "go build ./..."}, "Exit code 1\nqueue.go:12:3: undefined: limit").edit("/w/internal/queue/queue_of_messages.go")
	text := s.render(2500)
	has(t, text, "## Open\n- failed at m", "`go build ./...`", "## Last steps\n- m")
}

// TestNoNames: common words in capitals and what grep prints in front of a line of context name nothing.
func TestNoNames(t *testing.T) {
	t.Parallel()
	names := part((&story{}).user("look around").bash("grep -n -A3 limit", "IMPORTANT: this SHOULD hold BEFORE it is ACTIVE\nqueue.go-702-func limit() {\nserver.go:12: limitOfQueue").render(3000), "Other names")
	lacks(t, names, "SHOULD", "IMPORTANT", "BEFORE", "queue.go-702")
	has(t, names, "ACTIVE", "limitOfQueue")
}

// TestTimesEndNoSentence: the full stop of a.m. ends none.
func TestTimesEndNoSentence(t *testing.T) {
	t.Parallel()
	text := (&story{}).user("The report must never leave before 8:30 a.m. on the day of its release.").edit("/w/a.go").user("next").edit("/w/b.go").render(8000)
	has(t, part(text, "What the user wants kept in mind"), "8:30 a.m. on the day of its release.”")
}

// TestPageOfALongSession: a page of 5 KB has requests, rules and a whole failure, however long the session was.
func TestPageOfALongSession(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("port the header").edit("/w/header.ts").agent("The header is ported to the new pattern.")
	s.user("Never change the public interface of the header, which three other packages import. Always keep the tests of the header as they are, since another team reviews them.").edit("/w/header.ts")
	for range 120 {
		s.read("/w/big.ts").call("Read", map[string]any{"file_path": "/w/other.ts"}, strings.Repeat("identifierOne identifierTwo valueOfThree ", 120))
	}
	line := "src/header/main_header.ts(12,5): error TS2305: Module has no exported member HeaderOfThePageWhichIsLong, did you mean the other header of the page"
	s.failed("Bash", map[string]any{"command": "npm run build --workspace packages/header-of-the-page --if-present --loglevel error --no-audit --no-fund"}, "Exit code 2\n"+line)
	s.user("now the footer").edit("/w/footer.ts")
	text := s.render(5200)
	has(t, part(text, "Open"), "- failed at m", line)
	has(t, part(text, "What the user wants kept in mind"), "Never change the public interface", "Always keep the tests")
	has(t, part(text, "Goal"), "  → the agent at m4: “The header is ported to the new pattern.”")
	has(t, text, "## Requests and what became of them\n")
}

// TestOneLongRequest: the only request of a session has up to a third of the page.
func TestOneLongRequest(t *testing.T) {
	t.Parallel()
	plan := "Implement this plan:\n" + strings.Repeat("- Change one more of the callers, and test it.\n", 45) + "At last run the linter."
	text := (&story{}).user(plan).edit("/w/a.go").render(9000)
	if goal := strings.ReplaceAll(part(text, "Goal"), "\n    ", "\n"); !strings.Contains(goal, plan) {
		t.Errorf("%s", goal)
	}
}
