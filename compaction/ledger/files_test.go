package ledger_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
)

func TestRefusedAndFailedEditsAreNotListed(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("fix it").
		failed("Edit", map[string]any{"file_path": "/w/refused.go"}, "The user doesn't want to proceed with this tool use. The tool use was rejected. the user said:\nnever touch generated files").
		failed("Edit", map[string]any{"file_path": "/w/failed.go"}, "<tool_use_error>String to replace not found in file.</tool_use_error>").
		failed("Edit", map[string]any{"file_path": "/w/marked.go"}, "The disk of this machine is full.").
		call("write", map[string]any{"path": "/w/unmarked.go", "content": "x"}, "Error: EACCES: permission denied").
		edit("/w/good.go")
	text := s.render(9000)
	has(t, part(text, "Files"), "good.go")
	lacks(t, part(text, "Files"), "refused.go", "failed.go", "/marked.go", "unmarked.go")
	has(t, part(text, "What the user wants kept in mind"), "“never touch generated files”")
	has(t, part(text, "Last steps"), "refused by the user")
}

func TestReadThenEditedIsListedOnceAsChanged(t *testing.T) {
	t.Parallel()
	files := part((&story{}).user("go").read("/w/a.go").edit("/w/a.go").read("/w/b.go").render(8000), "Files")
	has(t, files, "- changed /w/a.go (m4)", "- read /w/b.go (m6)")
	if strings.Count(files, "a.go") != 1 {
		t.Errorf("listed more than once:\n%s", files)
	}
}

func TestShellChanges(t *testing.T) {
	t.Parallel()
	write := func(s *story, path string) *story {
		return s.call("Write", map[string]any{"file_path": path, "content": "x"}, "File created successfully at: "+path)
	}
	for name, tc := range map[string]struct {
		story       *story
		want, never []string
	}{
		"written, then removed":    {write(&story{}, "/w/a.go").bash("rm /w/a.go", ""), []string{"- created /w/a.go (m1, changed m3, rm, now deleted)"}, nil},
		"removed, written again":   {write(write(&story{}, "/w/a.go").bash("rm /w/a.go", ""), "/w/a.go"), []string{"/w/a.go (m1, changed m5)"}, []string{"deleted"}},
		"restored":                 {(&story{}).edit("/w/f.go").bash("git checkout -- /w/f.go", ""), []string{"now restored)"}, nil},
		"git restore":              {(&story{}).edit("/w/f.go").bash("git restore /w/f.go", ""), []string{"now restored)"}, nil},
		"restored and edited":      {(&story{}).edit("/w/f.go").bash("git checkout -- /w/f.go", "").edit("/w/f.go"), nil, []string{"restored"}},
		"sed of two":               {(&story{}).bash("sed -i 's/a/b/; s/c.go/d.go/' x.go sub/y.go", ""), []string{"x.go (m1, sed -i)", "sub/y.go (m1, sed -i)"}, []string{"c.go", "d.go"}},
		"sed of BSD":               {(&story{}).bash("sed -i '' 's/a/b/' x.go", ""), []string{"x.go"}, nil},
		"sed that only reads":      {(&story{}).bash("sed -n '1,20p' x.go", "text").read("/w/z.go"), nil, []string{"x.go"}},
		"redirection":              {(&story{}).bash("cd sub && go run . > out.json 2> err.log", ""), []string{"sub/out.json (m1, written by the shell)"}, []string{"err.log"}},
		"no file":                  {(&story{}).bash("go test ./... > /dev/null 2>&1; echo x > /tmp/log.txt; rm -f *.tmp build/*.o", "").read("/w/z.go"), nil, []string{"/dev/null", "log.txt", "*.tmp", ".o"}},
		"moved":                    {(&story{}).bash("git mv old.go new.go", ""), []string{"old.go (m1, git mv, now deleted)", "new.go (m1, git mv)"}, nil},
		"copied":                   {(&story{}).bash("cp a.go b.go", ""), []string{"b.go (m1, cp)"}, []string{"a.go"}},
		"formatted":                {(&story{}).bash("gofmt -w cmd/main.go && git add -A", ""), []string{"cmd/main.go (m1, gofmt)"}, nil},
		"tee":                      {(&story{}).bash("echo x | tee -a notes.md", "x"), []string{"notes.md (m1, tee)"}, nil},
		"failed sed":               {(&story{}).failed("Bash", map[string]any{"command": "sed -i 's/a/b/' x.go"}, "sed: can't read x.go: No such file or directory").read("/w/z.go"), nil, []string{"x.go"}},
		"here-document":            {(&story{}).bash("cat > run.sh <<'EOF'\nrm important.go\nsed -i s/a/b/ other.go\nEOF", ""), []string{"run.sh"}, []string{"important.go", "other.go"}},
		"prose of the user":        {(&story{}).user("Do this:\n```\nrm important.go\nsed -i s/a/b/ other.go\n```\nthen edit stuff.go").read("/w/z.go"), nil, []string{"important.go", "other.go", "stuff.go"}},
		"quoted text":              {(&story{}).bash(`git commit -m "rm a.go > b.go && mv c.go d.go"`, "").read("/w/z.go"), nil, []string{"a.go", "b.go", "c.go", "d.go"}},
		"folder removed":           {(&story{}).edit("/w/sub/a.go").bash("rm -rf /w/sub", ""), []string{"/w/sub/a.go (m3, rm, now deleted)"}, nil},
		"relative is absolute":     {(&story{}).edit("/w/sub/a.go").bash("sed -i s/a/b/ sub/a.go", ""), []string{"/w/sub/a.go (m3, sed -i)"}, []string{"changed sub/a.go"}},
		"apply_patch of Codex":     {(&story{}).call("apply_patch", "*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+func added() {}\n*** Add File: b.go\n+y\n*** Delete File: c.go\n*** End Patch", "Success. Updated the following files:"), []string{"a.go", "created b.go (m1)", "c.go (m1, patch, now deleted)"}, nil},
		"apply_patch in a shell":   {(&story{}).call("shell", map[string]any{"command": []any{"bash", "-lc", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n*** End Patch\nEOF"}}, "Success."), []string{"changed a.go (m1)"}, nil},
		"editor of OpenHands":      {(&story{}).call("str_replace_editor", map[string]any{"command": "str_replace", "path": "/w/a.py", "old_str": "a", "new_str": "b"}, "The file /w/a.py has been edited."), []string{"changed /w/a.py (m1)"}, nil},
		"view in that editor":      {(&story{}).call("str_replace_editor", map[string]any{"command": "view", "path": "/w/a.py"}, "text"), []string{"read /w/a.py (m1)"}, []string{"changed"}},
		"replace of Gemini":        {(&story{}).call("replace", map[string]any{"file_path": "/w/a.ts", "old_string": "a", "new_string": "b"}, "Successfully modified file"), []string{"changed /w/a.ts (m1)"}, nil},
		"OpenCode":                 {(&story{}).call("edit", map[string]any{"filePath": "/w/a.ts"}, "ok"), []string{"changed /w/a.ts (m1)"}, nil},
		"Goose":                    {(&story{}).call("developer__text_editor", map[string]any{"command": "write", "path": "/w/a.rs", "file_text": "x"}, "Successfully wrote"), []string{"changed /w/a.rs (m1)"}, nil},
		"unknown tool with a kind": {&story{log: []abi.Message{{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "1", Name: "patcher", Kind: abi.ToolEdit, Arguments: map[string]any{"path": "/w/k.go"}}}}, {Role: abi.RoleTool, ToolCallID: "1"}}}, []string{"/w/k.go"}, nil},
		"unknown tool":             {(&story{}).call("frobnicate", map[string]any{"path": "/w/u.go"}, "done").read("/w/z.go"), nil, []string{"/w/u.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := part(tc.story.render(8000), "Files")
			has(t, files, tc.want...)
			lacks(t, files, tc.never...)
		})
	}
}

// TestFileToolsOfServers shows that a file tool of an MCP server is one, and that other tools of servers are look-ups.
func TestFileToolsOfServers(t *testing.T) {
	t.Parallel()
	files := part((&story{}).user("go").call("mcp__fs__write_file", map[string]any{"path": "/w/m.txt", "content": "x"}, "Successfully wrote to /w/m.txt").
		call("mcp__fs__edit_file", map[string]any{"path": "/w/bad.txt"}, "Error: permission denied").
		call("mcp__notes__read", map[string]any{"id": "7"}, "a note").render(3000), "Files")
	has(t, files, "- changed /w/m.txt (m2)")
	lacks(t, files, "bad.txt", "note")
}

// TestDeletedFilesComeLast: files that the agent made for itself and deleted are listed behind those that stay, and not as
// what a request came to.
func TestDeletedFilesComeLast(t *testing.T) {
	t.Parallel()
	text := (&story{}).user("fix it").edit("/w/a.py").call("Write", map[string]any{"file_path": "/w/try.py", "content": "x"}, "File created successfully at: /w/try.py").
		bash("rm /w/try.py", "").agent("The fix is in a.py now.").render(8000)
	has(t, part(text, "Goal"), "  → changed a.py\n  → the agent")
	has(t, part(text, "Files"), "- changed /w/a.py (m2)\n- created /w/try.py (m4, changed m6, rm, now deleted)")
}
