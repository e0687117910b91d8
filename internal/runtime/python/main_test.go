package python

import (
	"os"
	"strconv"
	"testing"
)

// mark tells the processes of this run of the tests from others.
var mark = strconv.Itoa(os.Getpid())

func TestMain(m *testing.M) {
	inherited = append(inherited, "SLUICE_TEST_MARK")
	_ = os.Setenv("SLUICE_TEST_MARK", mark)
	os.Exit(m.Run())
}
