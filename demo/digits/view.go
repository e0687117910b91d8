package digits

import "math"

// view is a way to look at an image: turned, scaled and shifted a little. A variant that looks several times and takes
// the mean of what it sees errs less often.
type view struct{ turn, scaleX, scaleY, shear, dx, dy float64 }

// views returns n of them, the first straight on, the others spread around it.
func views(n int) []view {
	all := make([]view, n)
	for i := range all {
		all[i] = view{scaleX: 1, scaleY: 1}
		if i == 0 {
			continue
		}
		// Irrational steps spread points evenly in every direction however many there are.
		u := func(step float64) float64 { _, f := math.Modf(float64(i) * step); return 2*f - 1 }
		all[i] = view{
			turn:   0.11 * u(0.8191725134),
			scaleX: 1 + 0.07*u(0.6710436067), scaleY: 1 + 0.07*u(0.5497004779),
			shear: 0.08 * u(0.4503), dx: 1 * u(0.3688), dy: 1 * u(0.3021),
		}
	}
	return all
}

// grid returns where each pixel of the view lies in the image, as x and y from -1 to 1 between the outer edges.
func (v view) grid() []float32 {
	g := make([]float32, 0, Pixels*2)
	sin, cos := math.Sin(v.turn), math.Cos(v.turn)
	for y := range Size {
		for x := range Size {
			px, py := float64(x)-(Size-1)/2.0, float64(y)-(Size-1)/2.0
			px += v.shear * py
			qx, qy := v.scaleX*(cos*px-sin*py)+v.dx, v.scaleY*(sin*px+cos*py)+v.dy
			g = append(g, float32(qx*2/Size), float32(qy*2/Size))
		}
	}
	return g
}

// look sets to to the image seen at the places of a grid, bilinear, with the border repeated outwards: what GridSample
// does in the graph.
func look(img, grid, to []float32) {
	for i := range Pixels {
		x := min(max(((grid[2*i]+1)*Size-1)/2, 0), Size-1)
		y := min(max(((grid[2*i+1]+1)*Size-1)/2, 0), Size-1)
		ix, iy := min(int(x), Size-2), min(int(y), Size-2)
		fx, fy := x-float32(ix), y-float32(iy)
		p := iy*Size + ix
		top := img[p] + fx*(img[p+1]-img[p])
		low := img[p+Size] + fx*(img[p+Size+1]-img[p+Size])
		to[i] = top + fy*(low-top)
	}
}
