package cli

import (
	"fmt"
	"io"

	"github.com/sluice-serving/sluice/internal/host/planning"
)

// printDiagnosis writes why a demand cannot be carried, and the changes with which it could be.
func printDiagnosis(w io.Writer, v *planning.Plan) error {
	summary, lists := v.DiagnosisText()
	if len(summary) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	for _, line := range summary {
		fmt.Fprintln(w, line)
	}
	for _, l := range lists {
		fmt.Fprintf(w, "\n%s\n", l.Title)
		for _, x := range l.Items {
			fmt.Fprintf(w, "  %s\n", x.Text)
		}
	}
	return nil
}
