package digits

// view is a picture moved by whole pixels. A network that halves its input three times looks at every eighth pixel
// only, and where a digit lies between these changes what it sees; the mean over views that fill the gaps errs less
// often (Sermanet et al., OverFeat, 2014, section 3.3).
type view struct{ dx, dy int }

// lattice lists the views in the order in which a variant takes them: the first is the picture as it is, and each power
// of two of them divides the gap of 8 pixels evenly.
var lattice = []view{{0, 0}, {4, 4}, {0, 4}, {4, 0}, {2, 2}, {-2, -2}, {2, -2}, {-2, 2}}

// furthest is how far a view may move a picture.
const furthest = 4

// look sets to to the picture moved, its border repeated outwards.
func (v view) look(picture, to []float32) {
	for y := range Size {
		row := picture[min(max(y+v.dy, 0), Size-1)*Size:][:Size]
		for x := range Size {
			to[y*Size+x] = row[min(max(x+v.dx, 0), Size-1)]
		}
	}
}
