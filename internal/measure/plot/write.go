package plot

import (
	"bytes"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawing is something of a size that can be drawn.
type drawing struct {
	width, height vg.Length
	draw          func(draw.Canvas) error
}

// png writes a drawing to w, at 144 dots per inch.
func (d drawing) png(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(d.width, d.height), vgimg.UseDPI(144))
	if err := d.draw(draw.New(c)); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// svg writes a drawing to w. It writes nothing where drawing fails.
func (d drawing) svg(w io.Writer) error {
	c := vgsvg.New(d.width, d.height)
	if err := d.draw(draw.New(c)); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
