package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mortise-dev/mortise"

// arrows lists the packages of ours that a package may import, by the longest
// prefix of its folder that has an entry. "*" is everything.
func arrows() map[string][]string {
	return map[string][]string{
		".":                             {"agent", "background", "blob", "compaction", "compaction/recall", "llm", "mailbox", "mailbox/agentrun", "inbox", "phases", "store", "store/memstore", "thread", "abi"},
		"serve":                         {".", "agent", "blob", "compaction", "compaction/trial", "mailbox", "mailbox/agentrun", "phases", "proxy/wire", "thread", "internal/agui", "abi"}, // of proxy/wire the reader of fields
		"internal/acp":                  {"serve", "agent", "agent/mcp", "mailbox", "mailbox/agentrun", "phases", "abi"},
		"internal/agui":                 {"abi"},
		"internal/agui/aguitest":        {},
		"metrics":                       {".", "agent", "background", "compaction", "host", "llm", "phases", "abi"},
		"spans":                         {".", "compaction", "llm", "mailbox", "abi"},
		"abi":                           {},
		"host":                          {"internal/engine", "internal/engine/compile", "internal/engine/native", "internal/wasm", "internal/wasm/meter"},
		"host/extismengine":             {"host", "internal/engine/extism"},
		"host/capability/fs":            {"internal/engine", "internal/engine/files"},
		"host/capability/http":          {"internal/engine", "internal/egress"},
		"host/capability/kv":            {"internal/engine"},
		"host/capability/log":           {"internal/engine"},
		"host/capability/messages":      {"internal/engine"},
		"host/capability/model":         {"internal/engine"},
		"host/hosttest":                 {"host", "host/extismengine", "host/capability/kv"},
		"host/sqlitekv":                 {"host", "host/capability/kv", "internal/engine", "internal/sqlitefile"},
		"internal/engine":               {"internal/wasm"},
		"internal/engine/compile":       {"internal/engine"},
		"internal/engine/files":         {"internal/engine"},
		"internal/engine/native":        {"internal/engine", "internal/engine/compile", "internal/engine/files", "internal/wasm", "internal/wasm/meter"},
		"internal/engine/extism":        {"internal/engine", "internal/engine/compile", "internal/engine/files", "internal/wasm", "internal/wasm/meter"},
		"internal/wasm":                 {},
		"internal/wasm/meter":           {"internal/wasm"},
		"internal/wire":                 {},
		"internal/egress":               {},
		"internal/schema":               {},
		"internal/sqlitefile":           {},
		"internal/archtest":             {},
		"internal/guest":                {"host", "host/capability/fs", "host/capability/http", "host/capability/kv", "host/capability/log", "host/capability/messages", "host/capability/model", "internal/schema", "internal/wire", "abi"},
		"phases":                        {"abi", "phases/state"},
		"phases/state":                  {"abi"},
		"phases/phasestest":             {"phases", "abi"},
		"hook":                          {"phases", "phases/state", "compaction", "compaction/ledger", "llm/transcript", "internal/dynamic", "abi"}, // a protocol: it translates, and decides nothing
		"hook/daemon":                   {"hook", "hook/frame", "internal/wire"},
		"hook/frame":                    {},
		"hook/install":                  {"hook", "hook/frame"},
		"hook/live":                     {"hook", "hook/daemon", "hook/frame", "hook/install", "llm/providertest", "phases", "abi"},
		"hook/mcpproxy":                 {"hook", "internal/egress", "proxy/wire", "abi"}, // of proxy/wire the readers of event streams and of fields
		"cmd/mortise-hook":              {"hook/frame"},                                   // small, for a process starts at each event
		"compaction":                    {"compaction/cost", "compaction/ledger", "compaction/verify", "abi"},
		"compaction/recall":             {"abi"},
		"compaction/verify":             {"abi"},
		"compaction/cost":               {"abi"},
		"compaction/eval":               {"compaction", "abi"},
		"compaction/eval/future":        {"compaction", "compaction/eval", "abi"},
		"inbox":                         {"store", "internal/dynamic", "abi"},
		"inbox/inboxtest":               {"inbox", "store", "abi"},
		"background":                    {"inbox", "internal/dynamic", "abi"},
		"blob":                          {"store", "abi"},
		"llm":                           {"internal/dynamic", "abi"},
		"llm/transcript":                {"abi"},
		"llm/replay":                    {"llm", "llm/transcript", "abi"},
		"llm/anthropic":                 {"llm", "abi"},
		"llm/openai":                    {"llm", "abi"},
		"llm/providertest":              {"abi"},
		"llm/llmtest":                   {"llm", "llm/providertest", "abi"},
		"agent":                         {"phases", "inbox", "llm", "abi", "internal/dynamic", "internal/schema"}, // a plugin's arguments for a call must fit the tool, native or not
		"agent/mcp":                     {"agent", "internal/egress", "internal/schema", "abi"},
		"mailbox":                       {"store", "thread"},
		"mailbox/mailboxtest":           {"mailbox", "store", "internal/killtest"},
		"mailbox/mailboxmetrics":        {"mailbox", "store"},
		"mailbox/mailboxtrace":          {"mailbox"},
		"mailbox/agentrun":              {"mailbox", "agent", "compaction", "llm", "thread", "store", "internal/wire", "abi"},
		"mailbox/agentrun/agentruntest": {"mailbox/agentrun", "mailbox/mailboxtest", "mailbox", "store", "agent", "compaction", "inbox", "thread", "phases", "llm", "internal/killtest", "abi"},
		"store":                         {},
		"plugins":                       {"phases", "host", "host/capability/messages", "internal/guest", "internal/schema", "internal/wire", "abi"},
		"summarizers":                   {"compaction", "compaction/trial", "host", "host/capability/model", "internal/guest", "internal/wire", "abi"},
		"summarizers/bundled":           {"host", "internal/bundle", "summarizers"},
		"plugins/bundled":               {"host", "internal/bundle"},
		"internal/bundle":               {"host"},
		"summarizers/role":              {"llm", "host", "host/capability/model", "abi"},
		"internal/exit":                 {"host"},
		"internal/term":                 {},
		"internal/config":               {"internal/exit", "serve", "agent", "inbox", "blob", "mailbox", "host", "compaction", "compaction/recall", "compaction/trial", "plugins/bundled", "summarizers/bundled", "abi"},
		"internal/program":              {"*"}, // it wires everything
		"internal/cli":                  command("internal/cli/checkcmd", "internal/cli/compactcmd", "internal/cli/explaincmd", "internal/cli/hookcmd", "internal/cli/proxycmd", "internal/cli/runcmd", "internal/cli/servecmd"),
		"internal/cli/links":            {"*"},
		"internal/cli/command":          {"internal/config", "internal/exit", "internal/program", "internal/term"},
		"internal/cli/check":            {"internal/exit", "internal/term"},
		"internal/cli/wording":          {"internal/term", "compaction"},
		"internal/cli/servecmd":         command("serve", "internal/acp"),
		"internal/cli/runcmd":           command("internal/cli/livecmd", "internal/cli/replaycmd"),
		"internal/cli/livecmd":          command("internal/cli/wording", ".", "agent", "background", "compaction", "mailbox", "mailbox/agentrun", "serve", "abi"),
		"internal/cli/replaycmd":        command("internal/cli/wording", ".", "agent", "background", "blob", "compaction", "host", "inbox", "llm/replay", "llm/transcript", "phases", "plugins", "store/memstore", "summarizers", "thread", "abi"),
		"internal/cli/compactcmd":       command("internal/cli/wording", "compaction", "compaction/eval", "compaction/eval/future", "host", "internal/guest", "internal/wire", "llm/transcript", "summarizers", "summarizers/bundled", "thread", "abi"),
		"internal/cli/hookcmd":          command("internal/cli/check", "hook", "hook/daemon", "hook/frame", "hook/install", "hook/live", "hook/mcpproxy", "internal/egress", "llm/providertest", "phases", "abi"),
		"internal/cli/proxycmd":         command("internal/cli/check", "proxy", "proxy/launch", "thread"),
		"internal/cli/checkcmd":         command("internal/cli/check", "agent/mcp", "mailbox", "store"),
		"internal/cli/explaincmd":       command("internal/cli/wording", "thread"),
		"cmd":                           {"*"},
		"examples":                      {"*"},
		"internal":                      {},
		"internal/warm":                 {"host", "host/extismengine", "host/capability/http", "host/capability/kv", "host/capability/model"},
		"internal/pgtest":               {"internal/testskip"},
		"compaction/signals":            {"abi"},
		"compaction/trial":              {"compaction", "abi"},
		"compaction/storetest":          {"compaction", "abi"},
		"thread":                        {"store", "phases", "compaction", "internal/wire", "abi"},
		"thread/threadtest":             {"thread", "store", "compaction", "compaction/storetest", "internal/killtest", "abi"},
		"store/internal/state":          {"store"},
		"store/internal/wait":           {"store"},
		"store/internal/sqlcore":        {},
		"store/memstore":                {"store", "store/internal/state", "store/internal/wait"},
		"store/storetest":               {"store", "store/memstore"},
		"store/viewtest": {
			"store", "thread", "thread/threadtest", "inbox", "inbox/inboxtest",
			"mailbox", "mailbox/mailboxtest", "mailbox/agentrun/agentruntest", "compaction", "abi",
		},
		"proxy":             {"proxy/lane", "proxy/money", "proxy/wire", "phases", "compaction", "store", "thread", "llm", "internal/schema", "abi"},
		"proxy/wire":        {"internal/dynamic", "abi"},
		"proxy/lane":        {"proxy/wire", "proxy/money", "phases/state", "compaction", "thread", "store", "internal/wire", "abi"},
		"proxy/money":       {"proxy/wire"},
		"proxy/launch":      {"hook/install"}, // it edits settings as hooks do
		"internal/agents":   {"internal/testskip"},
		"store/sqlitestore": {"store", "store/internal/sqlcore", "store/internal/wait", "internal/sqlitefile"},
		"store/pgstore":     {"store", "store/internal/sqlcore", "store/internal/wait"},
		"store/natsstore":   {"store", "store/internal/state", "store/internal/wait"},
		"store/storeurl":    {"store", "store/sqlitestore", "store/pgstore", "store/natsstore"},
	}
}

// command is what a package of commands may import: what all of them share, and more.
func command(more ...string) []string {
	return append([]string{"internal/cli/command", "internal/config", "internal/exit", "internal/program", "internal/term"}, more...)
}

// owners lists the folders that may import a third-party package.
func owners() map[string][]string {
	return map[string][]string{
		"github.com/tetratelabs/wazero":     {"internal/engine"},
		"github.com/danielgtaylor/huma":     {"serve"},
		"github.com/extism/go-sdk":          {"internal/engine/extism"},
		"github.com/vmihailenco/msgpack":    {"internal/wire", "store/natsstore"},
		"github.com/spf13/cobra":            {"internal/cli", "cmd"},
		"github.com/goccy/go-yaml":          {"internal/config", "internal/program"},
		"modernc.org/sqlite":                {"host/sqlitekv", "internal/sqlitefile", "store/sqlitestore"},
		"github.com/prometheus":             {"mailbox/mailboxmetrics", "metrics", "internal/program", "internal/cli"},
		"go.opentelemetry.io":               {"mailbox/mailboxtrace", "spans", "internal/program"},
		"github.com/jackc/pgx":              {"store/pgstore"},
		"github.com/tidwall/btree":          {"store/internal/state"},
		"github.com/nats-io/nats.go":        {"store/natsstore"},
		"github.com/nats-io/nats-server":    {"store/natsstore", "internal/cli"}, // only tests
		"github.com/anthropics":             {"llm/anthropic"},
		"golang.org/x/term":                 {"internal/term"},
		"golang.org/x/time":                 {"serve", "background"},
		"github.com/invopop/jsonschema":     {"internal/config"},
		"github.com/santhosh-tekuri/jsonsc": {"internal/schema"},
		"github.com/openai/openai-go":       {"llm/openai"},
		"github.com/google/jsonschema-go":   {"agent"},
		"github.com/modelcontextprotocol":   {"agent/mcp", "hook/mcpproxy", "internal/cli", "examples"}, // in hook/mcpproxy only tests
		"github.com/coder/acp-go-sdk":       {"internal/acp"},
		"github.com/andybalholm/brotli":     {"proxy", "internal/bundle", "internal/guestbuild"},
		"github.com/klauspost/compress":     {"proxy"},
		"github.com/pelletier/go-toml":      {"proxy/launch"},
	}
}

func TestArrows(t *testing.T) {
	t.Parallel()
	files := 0
	walk(t, func(folder, path string, file *ast.File) {
		files++
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			check(t, folder, path, imported)
		}
	})
	if files < 20 {
		t.Fatalf("read only %d files: the walk is broken", files)
	}
}

func check(t *testing.T, folder, path, imported string) {
	t.Helper()
	ours, ok := strings.CutPrefix(imported, module+"/")
	if imported == module {
		ours, ok = ".", true
	}
	if ok {
		allowed := table(t, folder)
		if !slices.Contains(allowed, "*") && !slices.Contains(allowed, ours) {
			t.Errorf("%s imports %s: folder %q may import %q; change the table in internal/archtest and give the reason in RATIONALE.md, or find another way",
				path, ours, folder, allowed)
		}
		return
	}
	for prefix, folders := range owners() {
		if strings.HasPrefix(imported, prefix) && !slices.ContainsFunc(folders, func(f string) bool { return within(folder, f) }) {
			t.Errorf("%s imports %s: it belongs to %q", path, imported, folders)
		}
	}
	if folder == "abi" {
		t.Errorf("%s imports %s: abi imports nothing, not even the standard library", path, imported)
	}
}

func table(t *testing.T, folder string) []string {
	t.Helper()
	for f := folder; ; f = filepath.ToSlash(filepath.Dir(f)) {
		if allowed, ok := arrows()[f]; ok && (f != "." || folder == ".") {
			return allowed
		}
		if f == "." {
			break
		}
	}
	t.Errorf("folder %q has no entry in the table of internal/archtest", folder)
	return []string{"*"}
}

func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// TestEveryPackageHasADoc fails for a package without a doc.go that has the
// headings which the house asks for.
func TestEveryPackageHasADoc(t *testing.T) {
	t.Parallel()
	folders := map[string]string{}
	walk(t, func(folder, path string, file *ast.File) {
		if file.Name.Name == "main" {
			return
		}
		if _, ok := folders[folder]; !ok {
			folders[folder] = ""
		}
		if filepath.Base(path) == "doc.go" && file.Doc != nil {
			folders[folder] = file.Doc.Text()
		}
	})
	for folder, doc := range folders {
		for _, heading := range []string{"# Concurrency", "# Errors"} {
			if !strings.Contains(doc, heading) {
				t.Errorf("package %s: doc.go has no heading %q", folder, heading)
			}
		}
	}
}

// walk parses every non-test Go file of the module. Folders with a go.mod of
// their own (SDK, guests) are other modules.
func walk(t *testing.T, visit func(folder, path string, file *ast.File)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(root, path, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(rel)), filepath.ToSlash(rel), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func skip(root, path string, d fs.DirEntry) error {
	if path == root {
		return nil
	}
	if name := d.Name(); strings.HasPrefix(name, ".") || name == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}
