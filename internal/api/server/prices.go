package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/sluice-serving/sluice/internal/api/oip"
)

// maxPriceBody bounds the body that changes a price, in bytes.
const maxPriceBody = 4 << 10

// Price is what a machine of a device type costs.
type Price struct {
	DeviceType   string  `json:"device_type"`
	PricePerHour float64 `json:"price_per_hour"`
}

// Prices returns the handler of an admin address that answers GET with all prices and takes a new one, a Price, by PUT.
// set returns false for an unknown device type.
func Prices(list func() []Price, set func(Price) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			_ = reply(w, list())
		case http.MethodPut:
			p, err := readPrice(w, r)
			if err == nil && !set(p) {
				err = oip.Errorf(oip.NotFound, "device_type", "there is no device type %.200q", p.DeviceType)
			}
			if err != nil {
				e, _ := clientError(err)
				writeError(w, e.Code.HTTP(), e.Error())
				return
			}
			_ = reply(w, p)
		default:
			w.Header().Set("Allow", "GET, PUT")
			writeError(w, http.StatusMethodNotAllowed, "use GET or PUT here")
		}
	})
}

func readPrice(w http.ResponseWriter, r *http.Request) (Price, error) {
	// A page of another site in a browser on this machine cannot send this content type without asking first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return Price{}, oip.Errorf(oip.Invalid, "Content-Type", "want application/json")
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPriceBody))
	in.DisallowUnknownFields()
	var p struct {
		DeviceType   *string  `json:"device_type"`
		PricePerHour *float64 `json:"price_per_hour"`
	}
	err := in.Decode(&p)
	if err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return Price{}, oip.Errorf(oip.TooLarge, "", "a price has at most %d bytes", maxPriceBody)
	case err != nil:
		return Price{}, oip.Errorf(oip.Invalid, "",
			"the body is not {\"device_type\": NAME, \"price_per_hour\": NUMBER}: %v", err)
	case p.DeviceType == nil:
		return Price{}, oip.Errorf(oip.Invalid, "device_type", "is missing")
	case p.PricePerHour == nil:
		return Price{}, oip.Errorf(oip.Invalid, "price_per_hour", "is missing")
	case !(*p.PricePerHour >= 0):
		return Price{}, oip.Errorf(oip.Invalid, "price_per_hour", "is %v, want at least 0", *p.PricePerHour)
	}
	return Price{*p.DeviceType, *p.PricePerHour}, nil
}
