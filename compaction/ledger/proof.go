package ledger

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// passed closes the failures of a command, of the parts of a chain, and of the tests that it includes.
func (l *Ledger) passed(n int, key string) {
	for i := range l.s.Work.Errors {
		e := &l.s.Work.Errors[i]
		if e.Passed != 0 || !l.proves(key, e) {
			continue
		}
		e.Passed = n
		if !strings.Contains(key, e.Key) {
			e.PassedBy = strings.Clone(key)
		}
	}
}

// proves reports whether the success of a command shows that a failed one succeeds now.
func (l *Ledger) proves(key string, e *abi.LedgerError) bool {
	if key == e.Key {
		return true
	}
	passed := strings.Split(key, " && ")
	for part := range strings.SplitSeq(e.Key, " && ") {
		ok := slices.ContainsFunc(passed, func(p string) bool { return p == part || widerTest(p, part) || includes(p, part) })
		if !ok {
			i, known := l.commands[part]
			ok = known && l.s.Work.Commands[i].Outcome == abi.CommandOK && l.s.Work.Commands[i].Message > e.Message
		}
		if !ok {
			return false
		}
	}
	return true
}

// widerTest reports a check of Go over all packages that includes the other one.
func widerTest(wide, narrow string) bool {
	for _, w := range []string{"go build", "go vet", "golangci-lint run"} {
		if (wide == w+" ./..." || wide == w && w == "golangci-lint run") && strings.HasPrefix(narrow, w+" ./") && !strings.Contains(narrow, "-tags") {
			return true
		}
	}
	return false
}

// includes reports a command that runs the tests which a narrower one had run: those of the same name, those of the same
// files or packages, or all of them.
func includes(wide, narrow string) bool {
	runner := testRunner(narrow)
	if runner == "" || strings.ContainsAny(narrow, ";|") {
		return false
	}
	for _, own := range []string{"-tags", "integration", "e2e"} { // which the whole of the tests may leave out
		if strings.Contains(narrow, own) && !strings.Contains(wide, own) {
			return false
		}
	}
	if testRunner(wide) == runner {
		targets, name := testTargets(narrow)
		all, one := testTargets(wide)
		if name != "" && one == name || one == "" && len(targets) > 0 && slices.Equal(all, targets) {
			return true
		}
	}
	return isSuite(wide, runner)
}

// isSuite reports a command that runs all tests of a project, by its own runner or by a tool that knows it.
func isSuite(key, runner string) bool {
	var words []string
	for w := range strings.FieldsSeq(key) {
		if !strings.HasPrefix(w, "-") {
			words = append(words, w)
		}
	}
	switch strings.Join(words, " ") {
	case runner, runner + " ./...":
		return runner != "go test" || strings.HasSuffix(key, " ./...")
	case "mise run test", "make test", "make check", "just test", "task test", "tox":
		return true
	case "npm test", "npm run test", "yarn test", "pnpm test", "bun test":
		return runner == "jest" || runner == "vitest"
	}
	return false
}

// testRunner is the program that runs tests in a command, empty if it is none.
func testRunner(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "npx "), "python -m ")
	for _, r := range []string{"go test", "pytest", "cargo test", "jest", "vitest", "rspec", "phpunit", "dotnet test"} {
		if key == r || strings.HasPrefix(key, r+" ") {
			return r
		}
	}
	return ""
}

// testTargets are the files or packages whose tests a command runs, and what it selects of them by name, empty for nothing.
func testTargets(key string) (targets []string, name string) {
	words := strings.Fields(key)
	for i := 0; i < len(words); i++ {
		w, value, _ := strings.Cut(words[i], "=")
		switch {
		case w == "-run" || w == "-k" || w == "-t":
			if value == "" && i+1 < len(words) {
				i++
				value = words[i]
			}
			name = value
		case !strings.HasPrefix(w, "-"):
			target, one, _ := strings.Cut(words[i], "::")
			if one != "" {
				name = one
			}
			if strings.ContainsAny(target, "./") {
				targets = append(targets, target)
			}
		}
	}
	return targets, name
}
