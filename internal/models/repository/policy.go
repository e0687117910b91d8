package repository

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// chooseVersions applies a version policy to the ascending version numbers there are. Without a policy the highest is
// served.
func chooseVersions(all []int64, policy *pb.ModelVersionPolicy) ([]int64, error) {
	switch {
	case policy.GetAll() != nil:
		return all, nil
	case policy.GetSpecific() != nil:
		want := slices.Clone(policy.GetSpecific().GetVersions())
		slices.Sort(want)
		want = slices.Compact(want)
		if len(want) == 0 {
			return nil, errors.New("config.pbtxt: version_policy.specific lists no version")
		}
		for _, n := range want {
			if _, ok := slices.BinarySearch(all, n); !ok {
				return nil, fmt.Errorf("config.pbtxt: version_policy.specific: version %d: %w: there is %v", n,
					ErrNotFound, all)
			}
		}
		return want, nil
	default:
		n := uint32(1)
		if l := policy.GetLatest(); l != nil {
			n = max(1, l.GetNumVersions())
		}
		if int64(n) < int64(len(all)) {
			all = all[len(all)-int(n):]
		}
		return all, nil
	}
}
