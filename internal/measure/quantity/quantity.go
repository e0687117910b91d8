// Package quantity formats numbers for people: with the significant digits and the unit.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Number writes three digits, or all of those before the point, with commas between thousands.
func Number(x float64) string {
	digits := 0
	for p := 100.0; x != 0 && math.Abs(x) < p && digits < 3; p /= 10 {
		digits++
	}
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if digits > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	whole, fraction, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + fraction
	}
	return whole
}

// Rate writes a rate in 1/s with three digits, or a dash for NaN or infinity.
func Rate(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "-"
	}
	return Number(x) + " /s"
}

// Multiple writes a factor with two digits.
func Multiple(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + " x" }

// Dollars writes an amount of money with two digits and without its unit.
func Dollars(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// Accuracy writes a fraction in per cent with two digits.
func Accuracy(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) + " %" }

// Percent writes a fraction in per cent with one decimal, or two if it is small, and without trailing zeros.
func Percent(x float64) string {
	digits := 1
	if math.Abs(x) < 0.01 {
		digits = 2
	}
	s := strconv.FormatFloat(100*x, 'f', digits, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + " %"
}

// SmallShare writes a fraction in per cent such that a tiny fraction differs from 0. A negative one is not known and
// written as a dash.
func SmallShare(x float64) string {
	switch {
	case x < 0:
		return "-"
	case x == 0:
		return "0 %"
	case x < 5e-6:
		return "< 0.001 %"
	case x < 0.01:
		return fmt.Sprintf("%.3f %%", 100*x)
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

// Milliseconds returns a duration in ms.
func Milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// Bytes formats a number of bytes in the largest binary unit that is exact to two decimals: "600MiB", "1.5GiB", "17B".
func Bytes(n int64) string {
	for k, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		size := int64(1) << (40 - 10*k)
		if n >= size && n*100%size == 0 {
			return strconv.FormatFloat(float64(n)/float64(size), 'f', -1, 64) + unit
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
