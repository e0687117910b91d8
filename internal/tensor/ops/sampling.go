package ops

import (
	"errors"
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/tensor"
)

// maxSide bounds the height and width of an output picture.
const maxSide = 16384

// pictureOptions are those of functions that make pictures.
var pictureOptions = []Option{
	{Name: "layout", Default: "nhwc", Doc: "`nhwc` or `nchw`, of the picture"},
	{Name: "to", Doc: "`nhwc` or `nchw`, of a result; without it that of the picture"},
	{
		Name: "filter", Default: "bilinear",
		Doc: "`bilinear` or `nearest`; centres of pixels lie at halves, and the border's pixels go on beyond it",
	},
	{
		Name: "datatype",
		Doc: "`UINT8` or `FP32` of the result; without it that of the picture. UINT8 is rounded to the nearest and " +
			"cut to 0 to 255",
	},
	meanOption, scaleOption,
	{Name: "multiple", Default: "1", Doc: "sides that are not given are rounded to a multiple of it"},
}

// sampling resamples parts of pictures to pictures of one size.
type sampling struct {
	size          // 0: not given
	nchw, to bool // nchw, of pictures and of results
	nearest  bool
	datatype tensor.DType // Invalid: that of the picture
	values   linear
	multiple int
}

// size is that of pictures in pixels.
type size struct{ height, width int }

func newSampling(s *settings) sampling {
	out := sampling{nchw: s.oneOf("layout", "nhwc", "nchw") == "nchw",
		nearest: s.oneOf("filter", "bilinear", "nearest") == "nearest",
		values:  newLinear(s), multiple: s.whole("multiple", 1, 1024)}
	out.to = out.nchw
	if _, ok := s.with["to"]; ok {
		out.to = s.oneOf("to", "nhwc", "nchw") == "nchw"
	}
	out.height, out.width = s.side("height"), s.side("width")
	if _, ok := s.with["datatype"]; ok {
		out.datatype = tensor.ParseDType(s.oneOf("datatype", "UINT8", "FP32"))
	}
	return out
}

// side reads the height or width of a picture; 0 where it is not given.
func (s *settings) side(name string) int {
	if s.text(name) == "" {
		return 0
	}
	return s.whole(name, 1, maxSide)
}

// pictures is a tensor of pictures with its strides.
type pictures struct {
	data                                []byte
	bytes                               bool // UINT8
	n, height, width, channels          int
	perPicture, perRow, perCol, perChan int
}

func (s *sampling) pictures(t *tensor.Tensor) pictures { return picturesOf(t, s.nchw) }

func picturesOf(t *tensor.Tensor, nchw bool) pictures {
	d := t.Shape
	p := pictures{data: t.Data, bytes: t.DType == tensor.Uint8, n: int(d[0])}
	if nchw {
		p.channels, p.height, p.width = int(d[1]), int(d[2]), int(d[3])
		p.perChan, p.perRow, p.perCol = p.height*p.width, p.width, 1
	} else {
		p.height, p.width, p.channels = int(d[1]), int(d[2]), int(d[3])
		p.perRow, p.perCol, p.perChan = p.width*p.channels, p.channels, 1
	}
	p.perPicture = p.height * p.width * p.channels
	return p
}

func (p *pictures) at(i int) float32 {
	if p.bytes {
		return float32(p.data[i])
	}
	return float(p.data, i)
}

// results allocates n pictures of a size.
func (s *sampling) results(n, channels int, of size, from tensor.DType) (tensor.Tensor, error) {
	if err := s.values.fits(int64(channels)); err != nil {
		return tensor.Tensor{}, err
	}
	return zeros(s.dtype(from), s.shape(int64(n), int64(channels), int64(of.height), int64(of.width))...)
}

func (s *sampling) dtype(from tensor.DType) tensor.DType {
	if s.datatype != tensor.Invalid {
		return s.datatype
	}
	return from
}

func (s *sampling) shape(n, channels, height, width int64) []int64 {
	if s.to {
		return []int64{n, channels, height, width}
	}
	return []int64{n, height, width, channels}
}

// rounded is a side in pixels as a multiple, at least one and at most maxSide.
func (s *sampling) rounded(pixels float64) int {
	return max(min(int(math.Round(pixels/float64(s.multiple))), maxSide/s.multiple), 1) * s.multiple
}

// spec describes n results for pictures of a description.
func (s *sampling) spec(n int64, of *tensor.Spec) (tensor.Spec, error) {
	channels := int64(-1)
	if of.Shape != nil {
		channels = of.Shape[3]
		if s.nchw {
			channels = of.Shape[1]
		}
	}
	side := func(given int) int64 {
		if given == 0 {
			return -1
		}
		return int64(given)
	}
	return tensor.Spec{DType: s.dtype(of.DType), Shape: s.shape(n, channels, side(s.height), side(s.width))},
		s.values.fits(channels)
}

// tap is the source of a row or column of the result: a weighted mean of two neighbours.
type tap struct {
	low, high int
	part      float32 // of high
}

// taps returns the sources of the n pixels of an axis that covers [from, to) of a picture's axis.
func (s *sampling) taps(from, to float64, n, size int) []tap {
	out := make([]tap, n)
	step := (to - from) / float64(n)
	for i := range out {
		at := from + (float64(i)+0.5)*step
		if s.nearest {
			k := int(min(max(math.Floor(at), 0), float64(size-1)))
			out[i] = tap{low: k, high: k}
			continue
		}
		at = min(max(at-0.5, 0), float64(size-1))
		low := math.Floor(at)
		out[i] = tap{low: int(low), high: min(int(low)+1, size-1), part: float32(at - low)}
	}
	return out
}

// sample writes the part of a picture that lies in b as result k of out, as so many columns of it.
func (s *sampling) sample(out *tensor.Tensor, k int, p *pictures, picture int, b box, columns int) {
	to := picturesOf(out, s.to)
	rows, cols := s.taps(b[1], b[3], to.height, p.height), s.taps(b[0], b[2], columns, p.width)
	base := picture * p.perPicture
	for y, r := range rows {
		top, bottom := base+r.low*p.perRow, base+r.high*p.perRow
		for x, c := range cols {
			left, right := c.low*p.perCol, c.high*p.perCol
			at := k*to.perPicture + y*to.perRow + x*to.perCol
			for ch := range p.channels {
				o := ch * p.perChan
				v := p.at(top + left + o)
				if !s.nearest {
					v += c.part * (p.at(top+right+o) - v)
					w := p.at(bottom + left + o)
					w += c.part * (p.at(bottom+right+o) - w)
					v += r.part * (w - v)
				}
				to.put(at+ch*to.perChan, s.values.of(v, ch))
			}
		}
	}
}

func (p *pictures) put(i int, v float32) {
	if !p.bytes {
		putFloat(p.data, i, v)
		return
	}
	if v > 0 { // NaN becomes 0
		p.data[i] = byte(min(v+0.5, 255))
	}
}

var errNoPixels = errors.New("the picture has no pixels")

func (p *pictures) check() error {
	if p.n > 0 && p.height*p.width == 0 {
		return fmt.Errorf("%w: it is %d x %d", errNoPixels, p.height, p.width)
	}
	return nil
}
