package cli

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
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

	barPanelWidth = 11 * vg.Centimeter
	barRow        = 0.55 * vg.Centimeter
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
// contender through its budgets, or a bar where there is one budget.
func plotSurvival(r *eval.Report, path string) error {
	format, err := plotFormat(path)
	if err != nil {
		return err
	}
	p := newSurvivalPlot(r)
	width, height := p.size()
	c, err := draw.NewFormattedCanvas(width, height, format)
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
	// bars means that no set has more than one budget.
	bars bool
}

// size is that of the whole drawing.
func (p *survivalPlot) size() (width, height vg.Length) {
	if p.bars {
		return barPanelWidth * vg.Length(len(p.sets)), 2 * (barRow*vg.Length(len(p.contenders)) + 2*vg.Centimeter)
	}
	return panelWidth*vg.Length(len(p.sets)) + legendWidth, 2 * panelHeight
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
	budgets := make(map[string]eval.Budget)
	p.bars = !slices.ContainsFunc(p.cells, func(c eval.Cell) bool {
		if _, known := budgets[c.Set]; !known {
			budgets[c.Set] = c.Budget
		}
		return budgets[c.Set] != c.Budget
	})
	return p
}

// title names a set, and how many probes its scores are of.
func (p *survivalPlot) title(set string) string {
	i := slices.IndexFunc(p.cells, func(c eval.Cell) bool { return c.Set == set })
	title := fmt.Sprintf("%s, n = %d probes", set, p.cells[i].Probes)
	if p.bars {
		title += fmt.Sprintf(", at %s", p.cells[i].Budget)
	}
	return title
}

// newPanel is an empty plot in a font without serifs.
func newPanel(title string) *plot.Plot {
	out := plot.New()
	out.Title.Text = title
	out.Title.Padding = vg.Millimeter
	for _, style := range []*draw.TextStyle{
		&out.Title.TextStyle, &out.X.Label.TextStyle, &out.Y.Label.TextStyle, &out.X.Tick.Label, &out.Y.Tick.Label,
	} {
		style.Font.Variant = "Sans"
	}
	return out
}

// draw draws the panels and the legend.
func (p *survivalPlot) draw(c draw.Canvas) error {
	panels := make([][]*plot.Plot, 2)
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.Padding, legend.TextStyle.Font.Variant = vg.Millimeter, "Sans"
	legend.ThumbnailWidth = 1.2 * vg.Centimeter // a whole pattern of dashes
	for row, score := range []string{"literal", "grounded"} {
		for col, set := range p.sets {
			var into *plot.Legend
			if row == 0 && col == 0 {
				into = &legend
			}
			panel, err := p.panel(set, score, into)
			if p.bars {
				panel, err = p.barPanel(set, score)
			}
			if err != nil {
				return err
			}
			panels[row] = append(panels[row], panel)
		}
	}
	left := c
	if !p.bars {
		left = draw.Crop(c, 0, -legendWidth, 0, 0)
	}
	tiles := draw.Tiles{
		Rows: 2, Cols: len(p.sets), PadX: 4 * vg.Millimeter, PadY: 4 * vg.Millimeter,
		PadTop: 2 * vg.Millimeter, PadRight: 4 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadLeft: 3 * vg.Millimeter,
	}
	for row, canvases := range plot.Align(panels, tiles, left) {
		for col, canvas := range canvases {
			panels[row][col].Draw(canvas)
		}
	}
	if p.bars {
		return nil
	}
	legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth+4*vg.Millimeter, 0, 0, -8*vg.Millimeter))
	return nil
}

// panel is one set and score.
func (p *survivalPlot) panel(set, score string, legend *plot.Legend) (*plot.Plot, error) {
	out := newPanel(p.title(set))
	out.X.Label.Text, out.Y.Label.Text = "tokens kept (%)", score
	out.Y.Min, out.Y.Max = 0, 1.02
	out.X.Min = 0
	out.X.Tick.Marker = percentTicks{}
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

// percentTicks are whole numbers, none of them beyond the axis.
type percentTicks struct{}

// Ticks implements plot.Ticker.
func (percentTicks) Ticks(from, to float64) []plot.Tick {
	step := 5.0
	for (to-from)/step > 8 {
		step *= 2
	}
	var out []plot.Tick
	for at := math.Ceil(from/step) * step; at <= to; at += step {
		out = append(out, plot.Tick{Value: at, Label: fmt.Sprint(at)})
	}
	return out
}

// barPanel is one set and score at one budget: a bar for each contender, the best on top.
func (p *survivalPlot) barPanel(set, score string) (*plot.Plot, error) {
	out := newPanel(p.title(set))
	out.X.Label.Text, out.X.Min, out.X.Max = score, 0, 1.02
	type bar struct {
		name  string
		value float64
	}
	var bars []bar
	for _, name := range p.contenders {
		if points := p.points(set, score, name); len(points) > 0 {
			bars = append(bars, bar{name, points[0].Y})
		}
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(a.value, b.value) })
	out.Add(plotter.NewGrid())
	names := make([]string, len(bars))
	for i, b := range bars {
		names[i] = b.name
		one, err := plotter.NewBarChart(plotter.Values{b.value}, 0.6*barRow)
		if err != nil {
			return nil, err
		}
		one.Horizontal, one.XMin, one.LineStyle.Width = true, float64(i), 0
		one.Color = color.RGBA{170, 170, 170, 255}
		if p.kinds[b.name] == eval.KindPolicy {
			one.Color = color.RGBA{0, 114, 178, 255}
		}
		out.Add(one)
	}
	out.NominalY(names...)
	out.Y.Min, out.Y.Max = -0.6, float64(len(bars))-0.4
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

// style tells contenders apart: each has its own colour, mark and pattern of dashes, and
// policies have thick lines.
func (p *survivalPlot) style(i int) (draw.LineStyle, draw.GlyphStyle) {
	// The palette of Okabe and Ito, which the colour-blind can tell apart, and darker ones.
	palette := []color.RGBA{
		{0, 114, 178, 255},
		{213, 94, 0, 255},
		{0, 158, 115, 255},
		{204, 121, 167, 255},
		{230, 159, 0, 255},
		{86, 180, 233, 255},
		{120, 120, 120, 255},
		{0, 0, 0, 255},
		{136, 34, 85, 255},
		{17, 119, 51, 255},
		{51, 34, 136, 255},
		{153, 85, 0, 255},
		{170, 170, 0, 255},
		{0, 85, 85, 255},
		{221, 120, 120, 255},
		{90, 60, 200, 255},
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
		polygon{4, 0, true},
		polygon{4, 0, false},
		polygon{3, 30, true},
		polygon{3, 30, false},
		polygon{5, 90, true},
		polygon{5, 90, false},
		polygon{3, 0, true},
		polygon{3, 0, false},
	}
	dashes := dashPatterns()
	n, round := len(palette), i/len(palette)
	line := draw.LineStyle{Color: palette[i%n], Width: vg.Points(1), Dashes: dashes[(i+round)%n]}
	if p.kinds[p.contenders[i]] == eval.KindPolicy {
		line.Width, line.Dashes = vg.Points(2), nil
		if i > 0 { // with long dashes, which look full
			line.Dashes = []vg.Length{vg.Length(8 + 4*i), 2}
		}
	}
	return line, draw.GlyphStyle{Color: line.Color, Radius: vg.Points(3), Shape: shapes[(i+2*round)%n]}
}

// dashPatterns are those of lines that are no policy's.
func dashPatterns() [][]vg.Length {
	return [][]vg.Length{
		{6, 2},
		{2, 2},
		{8, 2, 2, 2},
		{4, 4},
		{1, 2},
		{8, 2, 1, 2},
		{4, 1},
		{8, 2, 2, 2, 2, 2},
		{2, 4},
		{10, 3},
		{6, 2, 1, 2, 1, 2},
		{3, 1, 1, 1},
		{10, 2, 4, 2},
		{1, 4},
		{5, 1, 5, 4},
		{7, 4},
	}
}

// polygon is a mark with so many corners, the first one at an angle in degrees.
type polygon struct {
	corners int
	angle   float64
	filled  bool
}

// DrawGlyph implements draw.GlyphDrawer.
func (g polygon) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path vg.Path
	for i := range g.corners {
		angle := (g.angle + 360*float64(i)/float64(g.corners)) * math.Pi / 180
		corner := vg.Point{X: at.X + 1.2*style.Radius*vg.Length(math.Cos(angle)), Y: at.Y + 1.2*style.Radius*vg.Length(math.Sin(angle))}
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	c.SetColor(style.Color)
	if g.filled {
		c.Fill(path)
		return
	}
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(0.7)})
	c.Stroke(path)
}
