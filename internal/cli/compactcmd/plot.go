package compactcmd

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/compaction/eval"
)

// Sizes of a plot, in pixels.
const (
	panelWidth = 400
	barRow     = 18
	barLeft    = 122 // of the bars in a panel
	barLongest = 200
)

// The elements of SVG that a plot has.
type (
	svg struct {
		XMLName xml.Name   `xml:"http://www.w3.org/2000/svg svg"`
		Width   int        `xml:"width,attr"`
		Height  int        `xml:"height,attr"`
		Font    string     `xml:"font-family,attr"`
		Size    int        `xml:"font-size,attr"`
		Ground  svgRect    `xml:"rect"`
		Panels  []svgPanel `xml:"g"`
	}
	svgPanel struct {
		Transform string    `xml:"transform,attr"`
		Text      []svgText `xml:"text"`
		Rect      []svgRect `xml:"rect"`
	}
	svgText struct {
		X      int    `xml:"x,attr"`
		Y      int    `xml:"y,attr"`
		Anchor string `xml:"text-anchor,attr,omitempty"`
		Text   string `xml:",chardata"`
	}
	svgRect struct {
		X      int    `xml:"x,attr"`
		Y      int    `xml:"y,attr"`
		Width  int    `xml:"width,attr"`
		Height int    `xml:"height,attr"`
		Fill   string `xml:"fill,attr"`
	}
)

// checkPlot checks the name of a file.
func checkPlot(path string) error {
	if !strings.EqualFold(filepath.Ext(path), ".svg") {
		return fmt.Errorf("--plot %q: must end in .svg", path)
	}
	return nil
}

// plotSurvival draws both scores after one compaction, or after the shortest chain.
func plotSurvival(r *eval.Report, path string) error {
	data, err := xml.Marshal(newPlot(r.Cells))
	if err == nil {
		err = os.WriteFile(path, data, 0o644) //nolint:gosec // the user's own file
	}
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

// newPlot has a column for each set, and in it a panel for each budget and score.
func newPlot(cells []eval.Cell) svg {
	out := svg{Font: "sans-serif", Size: 12}
	var sets []string
	bottom := map[string]int{} // of a set's column
	for i, c := range cells {
		same := func(other eval.Cell) bool {
			return other.Set == c.Set && other.Budget == c.Budget && other.Chain == c.Chain && other.Growth == c.Growth
		}
		if c.Chain != cells[0].Chain || c.Growth != cells[0].Growth || slices.IndexFunc(cells, same) != i {
			continue
		}
		if !slices.Contains(sets, c.Set) {
			sets = append(sets, c.Set)
		}
		group := slices.DeleteFunc(slices.Clone(cells), func(other eval.Cell) bool { return !same(other) })
		for _, score := range []string{"literal", "grounded"} {
			panel := newPanel(group, score)
			panel.Transform = fmt.Sprintf("translate(%d %d)", 10+panelWidth*slices.Index(sets, c.Set), 24+bottom[c.Set])
			out.Panels = append(out.Panels, panel)
			bottom[c.Set] += 56 + barRow*len(group)
			out.Height = max(out.Height, 20+bottom[c.Set])
		}
	}
	out.Width = 20 + panelWidth*len(sets)
	out.Ground = svgRect{Width: out.Width, Height: out.Height, Fill: "white"}
	return out
}

// newPanel draws one score of a set at one budget: a bar for each contender, the best on top, policies in blue.
func newPanel(group []eval.Cell, score string) svgPanel {
	value := func(c eval.Cell) float64 {
		if score == "grounded" {
			return c.Grounded
		}
		return c.Literal
	}
	slices.SortStableFunc(group, func(a, b eval.Cell) int { return cmp.Compare(value(b), value(a)) })
	out := svgPanel{Text: []svgText{
		{Text: fmt.Sprintf("%s, n = %d probes", group[0].Set, group[0].Probes)},
		{Y: 16, Text: fmt.Sprintf("%s, at %s", score, group[0].Budget)},
	}}
	for i, c := range group {
		bar := svgRect{X: barLeft, Y: 26 + barRow*i, Width: int(barLongest * value(c)), Height: 12, Fill: "#aaa"}
		if c.Kind == eval.KindPolicy {
			bar.Fill = "#0072b2"
		}
		out.Rect = append(out.Rect, bar)
		out.Text = append(out.Text,
			svgText{X: barLeft - 6, Y: bar.Y + 10, Anchor: "end", Text: c.Contender},
			svgText{X: barLeft + bar.Width + 5, Y: bar.Y + 10, Text: fmt.Sprintf("%.2f", value(c))})
	}
	return out
}
