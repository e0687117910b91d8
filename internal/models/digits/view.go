package digits

// View is a shift of a picture by whole pixels. A network that halves its input three times looks at every eighth pixel
// only, so its logits depend on the position of a digit between these. The mean over views that fill the gaps has fewer
// errors (Sermanet et al., OverFeat, 2014, section 3.3).
type View struct{ dx, dy int }

// Lattice lists the views in the order in which a variant takes them: the first is the picture as it is, and each power
// of two of them divides the gap of 8 pixels evenly.
var Lattice = []View{{0, 0}, {4, 4}, {0, 4}, {4, 0}, {2, 2}, {-2, -2}, {2, -2}, {-2, 2}}

// maxShift is the largest shift of a view in one direction.
const maxShift = 4

// Shift sets to to the shifted picture. The border is repeated outwards.
func (v View) Shift(picture, to []float32) {
	for y := range Size {
		row := picture[min(max(y+v.dy, 0), Size-1)*Size:][:Size]
		for x := range Size {
			to[y*Size+x] = row[min(max(x+v.dx, 0), Size-1)]
		}
	}
}
