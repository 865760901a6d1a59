package cli

import (
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mortise-dev/mortise/compaction/eval"
)

// Sizes of a plot.
const (
	panelWidth  = 8 * vg.Centimeter
	panelHeight = 7 * vg.Centimeter
	legendWidth = 4.5 * vg.Centimeter
	maxPanels   = 6
)

// plotFormat is the format that the name of a file asks for.
func plotFormat(path string) (string, error) {
	switch format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), ".")); format {
	case "svg", "png":
		return format, nil
	default:
		return "", fmt.Errorf("--plot %q: must end in .svg or .png", path)
	}
}

// plotSurvival draws both scores over the share of tokens kept, after one
// compaction or the shortest chain: a column for each set, a line for each
// contender through its budgets.
func plotSurvival(r *eval.Report, path string) error {
	format, err := plotFormat(path)
	if err != nil {
		return err
	}
	p := newSurvivalPlot(r)
	c, err := draw.NewFormattedCanvas(panelWidth*vg.Length(len(p.sets))+legendWidth, 2*panelHeight, format)
	if err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	if err := p.draw(draw.New(c)); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	_, err = c.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	return nil
}

// survivalPlot is what is drawn.
type survivalPlot struct {
	cells      []eval.Cell
	sets       []string
	contenders []string
	kinds      map[string]eval.Kind
}

func newSurvivalPlot(r *eval.Report) *survivalPlot {
	p := &survivalPlot{kinds: make(map[string]eval.Kind)}
	for _, c := range r.Cells {
		first := r.Cells[0]
		if c.Chain != first.Chain || c.Growth != first.Growth || len(p.sets) == maxPanels && !slices.Contains(p.sets, c.Set) {
			continue
		}
		p.cells = append(p.cells, c)
		if !slices.Contains(p.sets, c.Set) {
			p.sets = append(p.sets, c.Set)
		}
		if !slices.Contains(p.contenders, c.Contender) {
			p.contenders = append(p.contenders, c.Contender)
			p.kinds[c.Contender] = c.Kind
		}
	}
	return p
}

// draw draws the panels and the legend.
func (p *survivalPlot) draw(c draw.Canvas) error {
	panels := make([][]*plot.Plot, 2)
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.Padding = vg.Millimeter
	for row, score := range []string{"literal", "grounded"} {
		for col, set := range p.sets {
			var into *plot.Legend
			if row == 0 && col == 0 {
				into = &legend
			}
			panel, err := p.panel(set, score, into)
			if err != nil {
				return err
			}
			panels[row] = append(panels[row], panel)
		}
	}
	left := draw.Crop(c, 0, -legendWidth, 0, 0)
	tiles := draw.Tiles{Rows: 2, Cols: len(p.sets), PadX: 2 * vg.Millimeter, PadY: 3 * vg.Millimeter, PadTop: vg.Millimeter, PadRight: 2 * vg.Millimeter}
	for row, canvases := range plot.Align(panels, tiles, left) {
		for col, canvas := range canvases {
			panels[row][col].Draw(canvas)
		}
	}
	legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth+4*vg.Millimeter, 0, 0, -8*vg.Millimeter))
	return nil
}

// panel is one set and score.
func (p *survivalPlot) panel(set, score string, legend *plot.Legend) (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = set
	out.X.Label.Text, out.Y.Label.Text = "tokens kept (%)", score
	out.Y.Min, out.Y.Max = 0, 1.02
	out.X.Min = 0
	out.Add(plotter.NewGrid())
	widest := 10.0
	for i, name := range p.contenders {
		points := p.points(set, score, name)
		if len(points) == 0 {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle, marks.GlyphStyle = p.style(i)
		out.Add(line, marks)
		if legend != nil {
			legend.Add(name, line, marks)
		}
		for _, at := range points {
			widest = max(widest, at.X)
		}
	}
	out.X.Max = widest * 1.05
	return out, nil
}

// points are the budgets of a contender, in the order of what they keep.
func (p *survivalPlot) points(set, score, contender string) plotter.XYs {
	var out plotter.XYs
	for i := range p.cells {
		c := &p.cells[i]
		if c.Set != set || c.Contender != contender {
			continue
		}
		y := c.Literal
		if score == "grounded" {
			y = c.Grounded
		}
		out = append(out, plotter.XY{X: 100 * (1 - c.Savings), Y: y})
	}
	slices.SortFunc(out, func(a, b plotter.XY) int {
		switch {
		case a.X < b.X:
			return -1
		case a.X > b.X:
			return 1
		}
		return 0
	})
	return out
}

// style tells contenders apart, also without colour: policies have full lines,
// the others broken ones, and each has a mark of its own.
func (p *survivalPlot) style(i int) (draw.LineStyle, draw.GlyphStyle) {
	// The palette of Okabe and Ito, which the colour-blind can tell apart.
	palette := []color.RGBA{
		{0, 114, 178, 255},
		{213, 94, 0, 255},
		{0, 158, 115, 255},
		{204, 121, 167, 255},
		{230, 159, 0, 255},
		{86, 180, 233, 255},
		{90, 90, 90, 255},
		{0, 0, 0, 255},
	}
	shapes := []draw.GlyphDrawer{
		draw.CircleGlyph{},
		draw.SquareGlyph{},
		draw.TriangleGlyph{},
		draw.PyramidGlyph{},
		draw.RingGlyph{},
		draw.BoxGlyph{},
		draw.CrossGlyph{},
		draw.PlusGlyph{},
	}
	line := draw.LineStyle{Color: palette[i%len(palette)], Width: vg.Points(1)}
	if p.kinds[p.contenders[i]] == eval.KindPolicy {
		line.Width = vg.Points(2)
	} else {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
	}
	return line, draw.GlyphStyle{Color: line.Color, Radius: vg.Points(3), Shape: shapes[i%len(shapes)]}
}
