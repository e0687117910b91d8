package runner

import "github.com/sluice-serving/sluice/internal/provider"

// suppliedMachines is a supply that ends with its run. The zero value is none.
type suppliedMachines struct {
	provider.Supply
	close func()
}

func (s *suppliedMachines) end() {
	if s.close != nil {
		s.close()
		s.close = nil
	}
}
