package ledger

import "github.com/mortise-dev/mortise/abi"

// shares are the parts of a page that sections may use.
type shares struct {
	goal, open, plan, rules, requests, steps, files, commits, commands, errors, findings, lookups, statements float64
	// least is how many bytes of the first and of the latest request are shown, and a word more.
	least int
	small bool
	short bool // paths are relative to the folder
	talk  bool
}

func normalShares() shares {
	return shares{
		goal: .12, open: .10, plan: .06, rules: .04, requests: .20, steps: .10, files: .30, commits: .04, commands: .04, errors: .03, findings: .05, lookups: .03,
		least: 330,
	}
}

// smallShares are those of a page that is too short for prose.
func smallShares() shares {
	return shares{goal: .05, open: .06, rules: .08, requests: .08, steps: .05, files: .10, commits: .02, least: 330, small: true}
}

// nameShares are those of a page of about a hundredth of what was read: goal, stopped requests and changed files, and
// names, of paths what is below the working directory.
func nameShares() shares {
	return shares{goal: .05, open: .03, rules: .04, files: .04, least: 330, small: true, short: true}
}

// tinyPage is below how many bytes a page has room for a few facts alone.
const tinyPage = 1200

// talkShares are those of a conversation without files and commands.
func talkShares() shares {
	return shares{goal: .04, open: .05, plan: .06, steps: .15, lookups: .06, statements: .9, least: 330, talk: true}
}

// Pages below smallPage bytes are small, and have little but names below a namesPart of what was read. From
// fullPage on prose has its whole share, on a page between it has less.
const (
	smallPage = 5000
	fullPage  = 20000
	namesPart = 80
)

// leastRules and leastFailure are how many bytes of a page that is not small rules and open work may take at least.
const (
	leastRules   = 450
	leastFailure = 600
)

// On a page of names of leastNowPage bytes and more, what is open and the latest steps have some bytes at least.
const (
	leastNowPage  = 2000
	leastNowOpen  = 160
	leastNowSteps = 90
)

// leastOpen gives what is open, and what the user wants always, some lines on a small page: more names do not replace them.
func leastOpen(s shares, budget int) shares {
	if budget < tinyPage {
		s.open = .3
	}
	if budget < tinyPage*2 {
		s.rules = .12
	}
	if budget >= leastNowPage {
		s.open, s.steps = max(s.open, leastNowOpen/float64(budget)), max(s.steps, leastNowSteps/float64(budget))
	}
	return s
}

func sharesFor(s *abi.Ledger, budget int) shares {
	read := s.Bytes
	if len(s.Work.Files)+len(s.Work.Commands) == 0 {
		return talkShares()
	}
	switch {
	case budget >= smallPage:
	case int64(budget)*namesPart < read:
		return leastOpen(nameShares(), budget)
	default:
		return leastOpen(smallShares(), budget)
	}
	out := normalShares()
	part := min(1, .5+.5*float64(budget-smallPage)/(fullPage-smallPage))
	for _, share := range []*float64{&out.goal, &out.open, &out.rules, &out.requests, &out.steps, &out.commands, &out.errors, &out.findings} {
		*share *= part
	}
	out.rules, out.open = max(out.rules, leastRules/float64(budget)), max(out.open, leastFailure/float64(budget))
	return out
}
