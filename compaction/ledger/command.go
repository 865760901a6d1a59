package ledger

import (
	"path"
	"strings"
)

// keyOf is a command without what differs between runs of the same: a change of directory and
// variables in front, redirections, and the filters of its output behind.
func keyOf(parts []part) string {
	var b strings.Builder
	for i := range parts {
		p := &parts[i]
		words := plain(p.words)
		if len(words) == 0 || words[0].text == "cd" {
			continue
		}
		if i > 0 && parts[i-1].after == "|" && onlyFilters(parts[i:]) {
			break
		}
		if b.Len() > 0 {
			b.WriteString(" " + parts[i-1].after + " ")
		}
		for j, w := range words {
			if j > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w.text)
		}
		if b.Len() > maxKey || p.after == ";" && strings.Contains(words[0].text, "<<") {
			break
		}
	}
	return cut(strings.Join(strings.Fields(b.String()), " "), maxKey)
}

// filters show a part of what they read.
const filters = " head tail grep less cat more wc sort uniq tee "

// oneOf reports a word of a list with a blank around each.
func oneOf(list, word string) bool { return strings.Contains(list, " "+word+" ") }

// onlyFilters reports a pipe into commands that show a part of what they read.
func onlyFilters(parts []part) bool {
	for i := range parts {
		words := plain(parts[i].words)
		if len(words) == 0 || !oneOf(filters, words[0].text) {
			return false
		}
		if a := parts[i].after; a != "|" && a != "" {
			return false
		}
	}
	return true
}

// showsEnd reports a command whose output is shown to its end, where programs report success. Behind head
// or grep a line of success is one of many.
func showsEnd(parts []part) bool {
	for i := 1; i < len(parts); i++ {
		words := plain(parts[i].words)
		if parts[i-1].after == "|" && (len(words) == 0 || !oneOf(" tail cat tee less more ", words[0].text)) {
			return false
		}
	}
	return true
}

// hidden reports a command whose status is not that of all its parts.
func hidden(parts []part) bool {
	for i := range parts {
		switch parts[i].after {
		case "|", ";", "||", "&":
			if i < len(parts)-1 || parts[i].after == "&" {
				return true
			}
		}
	}
	return false
}

// readers are commands that show what is there; a word such as "error" in their output is no
// failure of theirs.
const readers = " cat head tail grep rg egrep less more ls find echo printf sed awk wc sort uniq diff stat file tree jq pwd which env date ps df du man history "

// gitReaders are the commands of git that only read.
const gitReaders = " log show diff status blame grep ls-files ls-tree cat-file rev-parse branch remote config reflog describe shortlog for-each-ref "

// onlyReads reports a command all of whose parts read.
func onlyReads(parts []part) bool {
	for i := range parts {
		words := plain(parts[i].words)
		if len(words) == 0 || words[0].text == "cd" {
			continue
		}
		name := path.Base(words[0].text)
		if name == "git" || name == "gh" {
			if len(words) < 2 || name == "git" && !oneOf(gitReaders, words[1].text) {
				return false
			}
			continue
		}
		if !oneOf(readers, name) {
			return false
		}
	}
	return true
}

// readsOnly is onlyReads for the key of a command.
func readsOnly(key string) bool {
	return onlyReads(parse(key))
}

// publishes reports a command that others see, and that cannot be taken back.
func publishes(key string) bool {
	for part := range strings.SplitSeq(key, " && ") {
		for _, p := range []string{"git push", "git tag ", "gh pr create", "gh release", "npm publish", "npm run publish", "cargo publish", "docker push", "kubectl apply", "terraform apply"} {
			if strings.HasPrefix(part, p) {
				return true
			}
		}
	}
	return false
}

// checkers are programs and their arguments that build, test or lint.
func checkers() []string {
	return []string{
		"go test", "go build", "go vet", "golangci-lint", "staticcheck", "make", "mise run", "npm test", "npm run", "yarn", "pnpm", "npx tsc", "tsc", "eslint", "jest", "vitest",
		"pytest", "python -m pytest", "tox", "ruff", "mypy", "flake8", "cargo test", "cargo build", "cargo check", "cargo clippy", "mvn", "gradle", "./gradlew", "dotnet test",
		"dotnet build", "bun test", "bun run", "deno test", "bazel", "ctest", "cmake --build", "rspec", "bundle exec", "phpunit", "just", "task", "tsx", "biome",
	}
}

// isCheck reports a command that builds, tests or lints.
func (l *Ledger) isCheck(key string) bool { return isCheck(l.checks, key) }

func isCheck(checks []string, key string) bool {
	for _, c := range checks {
		at := strings.Index(key, c)
		if at < 0 || at > 0 && (at < 2 || strings.IndexByte("&;|", key[at-2]) < 0) {
			continue
		}
		if end := at + len(c); end == len(key) || key[end] == ' ' || key[end] == ':' {
			return true
		}
	}
	return false
}
