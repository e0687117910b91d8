package ramsis

import "testing"

func TestChoices(t *testing.T) {
	for c, want := range map[modelSet]int{pareto: 9, dense: 60, few: 3} {
		list, err := setup{task: "image", modelSet: c}.models()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != want {
			t.Errorf("%q: %d models, want %d", c, len(list), want)
		}
		for i := 1; i < len(list); i++ {
			if list[i].accuracy <= list[i-1].accuracy || list[i].took[0] < list[i-1].took[0] {
				t.Errorf("%q: model %s is no step up from %s", c, list[i].name, list[i-1].name)
			}
		}
	}
}
