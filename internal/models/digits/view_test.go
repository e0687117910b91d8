package digits

import "testing"

func TestViewsMovePictures(t *testing.T) {
	picture, moved := make([]float32, Pixels), make([]float32, Pixels)
	for i := range picture {
		picture[i] = float32(i)
	}
	if Lattice[0] != (View{}) {
		t.Errorf("the first view is %v", Lattice[0])
	}
	for _, v := range Lattice {
		v.Shift(picture, moved)
		for i, got := range moved {
			x, y := min(max(i%Size+v.dx, 0), Size-1), min(max(i/Size+v.dy, 0), Size-1)
			if got != picture[y*Size+x] {
				t.Fatalf("view %v, pixel %d: %v, want %v", v, i, got, picture[y*Size+x])
			}
		}
		if max(v.dx, -v.dx, v.dy, -v.dy) > maxShift {
			t.Errorf("view %v moves further than %d", v, maxShift)
		}
	}
}

// TestViewsFillTheGapEvenly checks that the first two, four and eight views are equally far apart on the torus of the 8
// pixels between the places that a network looks at: each has another at the distance all others have one.
func TestViewsFillTheGapEvenly(t *testing.T) {
	const gap = 8
	for n, want := range map[int]int{2: 32, 4: 16, 8: 8} {
		for _, a := range Lattice[:n] {
			nearest := gap * gap
			for _, b := range Lattice[:n] {
				dx, dy := (a.dx-b.dx+gap)%gap, (a.dy-b.dy+gap)%gap
				dx, dy = min(dx, gap-dx), min(dy, gap-dy)
				if a != b {
					nearest = min(nearest, dx*dx+dy*dy)
				}
			}
			if nearest != want {
				t.Errorf("of %d views, %v has its nearest at a squared distance of %d, want %d", n, a, nearest, want)
			}
		}
	}
}
