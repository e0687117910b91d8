package serving

// Open is the part of a Spec that plans are made for. Closed apps and retired variants are left out, and identifiers
// are dense again. Device types and workers are the same in both.
type Open struct {
	Spec *Spec
	// Apps, Stages and Variants translate an identifier of Spec into that of the whole spec. They ascend.
	Apps     []AppID
	Stages   []StageID
	Variants []VariantID
	// AppOf, StageOf and VariantOf translate an identifier of the whole spec into that of Spec; None is left out of it.
	AppOf     []AppID
	StageOf   []StageID
	VariantOf []VariantID
}

// Open returns the part of s that is neither closed nor retired. The result shares device types, workers and the
// content of apps with s.
func (s *Spec) Open() *Open {
	o := &Open{
		AppOf: make([]AppID, len(s.Apps)), StageOf: make([]StageID, len(s.Stages)),
		VariantOf: make([]VariantID, len(s.Variants)),
	}
	c := &Spec{DeviceTypes: s.DeviceTypes, Workers: s.Workers}
	for a := range s.Apps {
		if o.AppOf[a] = None; !s.Apps[a].Closed {
			o.AppOf[a] = AppID(len(o.Apps))
			o.Apps = append(o.Apps, AppID(a))
		}
	}
	for i := range s.Stages {
		if o.StageOf[i] = None; o.AppOf[s.Stages[i].App] != None {
			o.StageOf[i] = StageID(len(o.Stages))
			o.Stages = append(o.Stages, StageID(i))
		}
	}
	for v := range s.Variants {
		if o.VariantOf[v] = None; !s.Variants[v].Retired && o.StageOf[s.Variants[v].Stage] != None {
			o.VariantOf[v] = VariantID(len(o.Variants))
			o.Variants = append(o.Variants, VariantID(v))
			x := s.Variants[v]
			x.Stage = o.StageOf[x.Stage]
			c.Variants = append(c.Variants, x)
		}
	}
	for _, a := range o.Apps {
		x := s.Apps[a]
		x.Stages = nil
		for _, i := range s.Apps[a].Stages {
			x.Stages = append(x.Stages, o.StageOf[i])
		}
		c.Apps = append(c.Apps, x)
	}
	for _, i := range o.Stages {
		x := s.Stages[i]
		x.App, x.Variants, x.Next = o.AppOf[x.App], nil, nil
		for _, v := range s.Stages[i].Variants {
			if o.VariantOf[v] != None {
				x.Variants = append(x.Variants, o.VariantOf[v])
			}
		}
		x.Confidences = translatedConfidences(s.Stages[i].Confidences, o.VariantOf)
		for _, e := range s.Stages[i].Next {
			x.Next = append(x.Next, Edge{To: o.StageOf[e.To], FanOut: e.FanOut, Rows: e.Rows})
		}
		c.Stages = append(c.Stages, x)
	}
	o.Spec = c
	return o
}

// Whole reports whether nothing was left out, so that both numberings are the same.
func (o *Open) Whole() bool {
	return len(o.Apps) == len(o.AppOf) && len(o.Stages) == len(o.StageOf) && len(o.Variants) == len(o.VariantOf)
}
