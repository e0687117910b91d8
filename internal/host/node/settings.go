package node

import (
	"strconv"

	"github.com/sluice-serving/sluice/internal/api/oip"
)

// Settings of a load. Their names in requests begin with server.SettingPrefix.
const (
	SlotsSetting  = "slots"  // runs beside each other
	BatchSetting  = "batch"  // items of the largest batch to warm up for
	CoresSetting  = "cores"  // threads of a run
	URISetting    = "uri"    // where the model is to be fetched from, if the repository lacks it
	DigestSetting = "digest" // of what is fetched: sha256:HEX
	ClassSetting  = "class"  // in a file of Python that is sent with the load
)

// Bounds of settings.
const (
	mostSlots = 64
	mostBatch = 1 << 16
	mostCores = 1024
)

type settings struct {
	slots, batch, cores int // 0 where the load does not say
	uri, digest, class  string
}

// settingsOf reads the settings of a load. It passes over those that it does not know: they are of a later version.
func settingsOf(given map[string]string) (s settings, err error) {
	number := func(name string, most int) int {
		text, ok := given[name]
		if !ok || err != nil {
			return 0
		}
		x, failed := strconv.Atoi(text)
		if failed != nil || x < 1 || x > most {
			err = oip.Errorf(oip.Invalid, "parameters."+name, "is %.20q, want a number from 1 to %d", text, most)
		}
		return x
	}
	s = settings{
		slots: number(SlotsSetting, mostSlots), batch: number(BatchSetting, mostBatch),
		cores: number(CoresSetting, mostCores), uri: given[URISetting], digest: given[DigestSetting],
		class: given[ClassSetting],
	}
	return s, err
}
