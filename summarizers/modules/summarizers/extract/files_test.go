package extract_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// section returns the items of a section of files.
func section(text, heading string) []string {
	_, rest, ok := strings.Cut("\n"+text, "\n"+heading+"\n")
	if !ok {
		return nil
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Split(line, ", ")
}

type step struct {
	tool   string
	args   map[string]any
	result string
}

// session is a conversation in which an assistant makes calls.
func session(steps ...step) []mortise.Message {
	list := []mortise.Message{say(mortise.RoleUser, "Fix the lease in the claim queue, please.")}
	for i, s := range steps {
		m := say(mortise.RoleAssistant, "Next.")
		m.ToolCalls = []mortise.ToolCall{{ID: strconv.Itoa(i), Name: s.tool, Arguments: s.args}}
		r := say(mortise.RoleTool, s.result)
		r.ToolCallID = strconv.Itoa(i)
		list = append(list, m, r)
	}
	for i := range list {
		list[i].ID = "m" + strconv.Itoa(i)
	}
	return list
}

func path(p string) map[string]any    { return map[string]any{"path": p} }
func command(c string) map[string]any { return map[string]any{"command": c} }

func checkFiles(t *testing.T, text string, read, modified []string) {
	t.Helper()
	for heading, want := range map[string][]string{"## Files read": read, "## Files modified": modified} {
		got := section(text, heading)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q in\n%s", heading, got, want, text)
		}
	}
}

// TestReadThenModified reads a file and edits it afterwards, as almost every
// session does.
func TestReadThenModified(t *testing.T) {
	t.Parallel()
	list := session(
		step{"read", path("claim.go"), "package claim"},
		step{"edit", path("claim.go"), "done"},
		step{"write", path("new_helper.go"), "done"},
	)
	for _, tokens := range []int64{417, 4000} { // 1,500 bytes, and more than enough
		text := summarize(t, &mortise.SummarizeRequest{Messages: list, BudgetTokens: tokens})
		checkFiles(t, text, nil, []string{"claim.go", "new_helper.go"})
	}
}

// TestModifiedFilesOfTheHost are listed although the messages show reads alone.
func TestModifiedFilesOfTheHost(t *testing.T) {
	t.Parallel()
	list := session(step{"read", path("a.go"), "x"}, step{"read", path("b.go"), "x"})
	text := summarize(t, &mortise.SummarizeRequest{
		Messages: list, ReadFiles: []string{"b.go", "c.go"}, ModifiedFiles: []string{"a.go", "d.go"}, BudgetTokens: 417,
	})
	checkFiles(t, text, []string{"b.go", "c.go"}, []string{"a.go", "d.go"})
}

// TestFilesOfCalls has one session for each way in which a call names a file.
func TestFilesOfCalls(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		steps          []step
		read, modified []string
	}{
		"absolute and relative": {
			[]step{{"read", path("/home/u/p/queue/claim.go"), "x"}, {"edit", path("queue/claim.go"), "ok"}, {"read", path("./queue/claim.go"), "x"}},
			nil,
			[]string{"queue/claim.go"},
		},
		"absolute and relative, both edited": {
			[]step{{"edit", path("claim.go"), "ok"}, {"edit", path("/p/claim.go"), "ok"}}, nil, []string{"claim.go"},
		},
		"in the working directory": {
			[]step{{"bash", command("cd /p && cat main.go"), "x"}, {"edit", path("/p/main.go"), "ok"}, {"edit", path("/p/cmd/main.go"), "ok"}},
			nil,
			[]string{"/p/main.go", "/p/cmd/main.go"},
		},
		"the same name in two folders": {
			[]step{{"read", path("/p/a/doc.go"), "x"}, {"edit", path("/p/b/doc.go"), "ok"}, {"edit", path("doc.go"), "ok"}},
			[]string{"/p/a/doc.go"},
			[]string{"/p/b/doc.go", "doc.go"},
		},
		"edits that failed": {
			[]step{
				{"Edit", path("a.go"), "<tool_use_error>File has not been read yet.</tool_use_error>"},
				{"Edit", path("b.go"), "The user doesn't want to proceed with this tool use."},
				{"edit", path("c.go"), "Error: old text not found"},
				{"edit", path("errors.go"), "errors.go is written"},
			},
			nil,
			[]string{"errors.go"},
		},
		"an editor that views": {
			[]step{
				{"str_replace_based_edit_tool", map[string]any{"command": "view", "path": "a.go"}, "x"},
				{"str_replace_based_edit_tool", map[string]any{"command": "insert", "path": "b.go"}, "ok"},
			},
			[]string{"a.go"},
			[]string{"b.go"},
		},
		"names that only sound like an edit": {
			[]step{{"dispatch_agent", path("a.go"), "x"}, {"credit_check", path("b.go"), "x"}, {"get_edit_history", path("c.go"), "x"}},
			[]string{"a.go", "b.go", "c.go"},
			nil,
		},
		"sed and perl": {
			[]step{{"bash", command("sed -i.bak -e 's/a.go/b.go/g' one.go && sed -n 1,9p two.go; perl -pi -e 's/x/y/' three.go\nsed -i '' s/q/r/ four.go"), ""}},
			[]string{"two.go"},
			[]string{"one.go", "three.go", "four.go"},
		},
		"-i of other programs": {
			[]step{{"bash", command("grep -i lease queue/claim.go | head; ssh -i a.key host"), ""}},
			[]string{"queue/claim.go"},
			nil,
		},
		"redirections": {
			[]step{{"bash", command("go test ./... > out.txt 2>&1; echo x >>notes.md 2>/dev/null; ls 2> err.log >&2; cat a.txt | tee b.txt"), ""}},
			[]string{"a.txt"},
			[]string{"out.txt", "notes.md", "err.log", "b.txt"},
		},
		"no redirections": {
			[]step{{"bash", command(`echo "a > one.go"; git commit -m 'x > two.go'; awk '$1 > 3.go' data.csv # > three.go
[[ $a > four.go ]] && (( n > 5 )); diff <(sort a.txt) <(sort b.txt)`), ""}},
			[]string{"data.csv", "a.txt", "b.txt"},
			nil,
		},
		"here-documents": {
			[]step{{"bash", command("cat > new.py <<'END'\nopen('x.py') > y.py\ncp a.py b.py\nEND\ncat <<A <<-B > two.md\nrm c.py\nA\nrm d.py\n\tB\nrm gone.py"), ""}},
			nil,
			[]string{"new.py", "two.md", "gone.py"},
		},
		"copies and moves": {
			[]step{{"bash", command("cp src.go dst.go; mv old.go new.go; git mv g1.go g2.go; git rm --cached kept.go"), ""}},
			[]string{"src.go", "kept.go"},
			[]string{"dst.go", "old.go", "new.go", "g1.go", "g2.go"},
		},
		"scripts within scripts": {
			[]step{{"shell", map[string]any{"command": []any{"bash", "-lc", "cd pkg && FOO=1 sudo sed -i s/a/b/ x.go"}}, ""}, {"bash", command(`sh -c "echo hi > y.txt"`), ""}},
			nil,
			[]string{"pkg/x.go", "y.txt"},
		},
		"a command that did not run": {
			[]step{{"Bash", command("rm a.go"), "The user doesn't want to proceed with this tool use."}, {"Bash", command("touch b.go && false"), "Exit code 1"}},
			nil,
			[]string{"b.go"},
		},
		"open ends": {
			[]step{{"bash", command("cat <<"), ""}, {"bash", command("echo 'x > a.go"), ""}, {"bash", command(`touch b.go \`), ""}, {"bash", command("((1"), ""}, {"bash", command(">"), ""}},
			nil,
			[]string{"b.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFiles(t, summarize(t, &mortise.SummarizeRequest{Messages: session(tc.steps...), BudgetTokens: 4000}), tc.read, tc.modified)
		})
	}
}

// TestExamplesAreNoCommands has code in prose, which no tool ran.
func TestExamplesAreNoCommands(t *testing.T) {
	t.Parallel()
	const code = "Use this:\n```bash\nsed -i s/a/b/ example.py\ncat > written.py\ngit diff seen.py\n```\n"
	list := session(step{"read", path("real.go"), "x"})
	list = append(list, say(mortise.RoleUser, code), say(mortise.RoleAssistant, code), say(mortise.RoleUser, "Thank you, that is all for now."))
	text := summarize(t, &mortise.SummarizeRequest{Messages: list, BudgetTokens: 4000})
	checkFiles(t, text, []string{"real.go"}, nil)
	if got := section(text, "## Commands"); got != nil {
		t.Errorf("examples are listed as commands: %q", got)
	}

	// An agent without tools writes its command as its only fenced block, and an
	// observation follows.
	for lang, modified := range map[string][]string{"bash": {"done.py"}, "mswea_bash_command": {"done.py"}, "python": nil} {
		list := append(slices.Clone(list),
			say(mortise.RoleAssistant, "THOUGHT: write it\n\n```"+lang+"\ncat <<'EOF' > done.py\nrm never.py\nEOF\n```"), say(mortise.RoleUser, "<returncode>0</returncode>\n<output></output>"))
		checkFiles(t, summarize(t, &mortise.SummarizeRequest{Messages: list, BudgetTokens: 4000}), []string{"real.go"}, modified)
	}
}

// TestFilesOverCompactions edits a file that an earlier summary lists as read.
func TestFilesOverCompactions(t *testing.T) {
	t.Parallel()
	text := summarize(t, &mortise.SummarizeRequest{Messages: session(step{"read", path("/p/claim.go"), "x"}, step{"edit", path("b.go"), "ok"}), BudgetTokens: 1200})
	checkFiles(t, text, []string{"/p/claim.go"}, []string{"b.go"})
	for range 3 {
		list := session(step{"edit", path("claim.go"), "ok"}, step{"read", path("b.go"), "x"})
		text = summarize(t, &mortise.SummarizeRequest{Messages: list, PreviousSummary: &text, BudgetTokens: 1200})
		checkFiles(t, text, nil, []string{"b.go", "claim.go"})
	}
	if strings.Contains(text, "left out for space") {
		t.Errorf("a file in its new place counts as left out:\n%s", text)
	}
}
