package replaycmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/program"
)

// guestsOf is what the modules have used.
func guestsOf(p *program.Parts) []GuestReport {
	var out []GuestReport
	for _, s := range p.Usage() {
		out = append(out, GuestReport{
			Name: s.Name, Engine: s.Engine, Calls: s.Calls, Failed: s.Failures, Traps: s.Traps,
			Replaced: s.Replaced, ReplacedBy: s.ReplacedBy, Printed: s.Printed, Late: s.Late, Fuel: s.Fuel, Swaps: s.Swaps, Rollbacks: s.Rollbacks,
			Denied: s.Denied, HTTP: s.Uses["http"], KV: s.Uses["kv"], Files: s.Uses["fs"], LogsDropped: s.LogsDropped,
		})
	}
	return out
}

// notes are sentences about what the numbers of a module come from. Their subject is the module.
func (g *GuestReport) notes() []string {
	var out []string
	if g.Replaced > 0 {
		out = append(out, fmt.Sprintf("lost %d instances: %s", g.Replaced, replacementList(g.ReplacedBy)))
	}
	if n := g.ReplacedBy[host.ReplacedMemory]; n > 0 {
		out = append(out, fmt.Sprintf("added more memory than is given back in %d calls, which makes each next one slower: "+
			"raise limits: {memory_mib: ...}, or let it allocate less", n))
	}
	if n := g.ReplacedBy[host.ReplacedKernel]; n > 0 {
		out = append(out, fmt.Sprintf("kept more than 4 MiB in blocks in %d calls, which makes each next one slower: "+
			"let it free blocks, or use input_read and output_write", n))
	}
	if g.Printed > 0 {
		out = append(out, fmt.Sprintf("printed %d lines, which are not shown: grants: {log: true} and --log-level info show them", g.Printed))
	}
	if g.Late > 0 {
		out = append(out, fmt.Sprintf("had %d host calls that continued after their call was out of time", g.Late))
	}
	return out
}

// replacementList lists counts, the largest first.
func replacementList(counts map[host.Reason]int64) string {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b host.Reason) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	list := make([]string, len(kinds))
	for n, kind := range kinds {
		list[n] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return strings.Join(list, ", ")
}
