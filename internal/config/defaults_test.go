package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/limits"
)

// documented returns the default in a comment: the text between "Default: " and the end of the clause.
func documented(comment string) (text string, ok bool) {
	_, text, ok = strings.Cut(strings.Join(strings.Fields(comment), " "), "Default: ")
	for _, end := range []string{". ", ", ", "; "} {
		text, _, _ = strings.Cut(text, end)
	}
	return strings.Trim(strings.TrimSuffix(text, "."), "`"), ok
}

// TestServerDefaultsAreAsDocumented compares the defaults in the manual with those of a file without a server section.
func TestServerDefaultsAreAsDocumented(t *testing.T) {
	f, err := Parse([]byte(small), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs := comments(t)
	compared := 0
	for _, v := range []reflect.Value{
		reflect.ValueOf(f.Server), reflect.ValueOf(f.Server.Limits), reflect.ValueOf(f.Telemetry),
	} {
		typ := v.Type()
		for i := range typ.NumField() {
			field, got := typ.Field(i), v.Field(i)
			want, ok := documented(docs[typ.Name()].Fields[field.Name])
			switch {
			case !ok && got.Kind() == reflect.Struct, field.Name == "AdminToken", field.Name == "LatencyBuckets",
				field.Name == "Hosts", field.Name == "ConnectionsPerAddress",
				field.Name == "Memory":
				continue // described field by field, or in words
			case !ok:
				t.Errorf("the comment of %s.%s names no default", typ.Name(), field.Name)
			case want == "none":
				want = ""
			}
			if d := Duration(0); got.Type() == reflect.TypeFor[Duration]() && d.parse(want) == nil {
				want = d.String() // 2m is written 2m0s, too
			}
			if said := fmt.Sprint(got.Interface()); said != want {
				t.Errorf("%s.%s is %q without a word in the file, documented is %q", typ.Name(), field.Name, said, want)
			}
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("only %d settings were compared", compared)
	}
}

// TestAdminAnywhereNeedsAToken: a caller from another machine may not change anything without a token.
func TestAdminAnywhereNeedsAToken(t *testing.T) {
	const anywhere = "server: {admin: \"0.0.0.0:8002\", admin_anywhere: true%s}\n"
	if _, err := Parse([]byte(small+fmt.Sprintf(anywhere, "")), "x.yaml"); err == nil ||
		!strings.Contains(err.Error(), "server.admin_anywhere: needs server.admin_token") {
		t.Errorf("without a token: %v", err)
	}
	if _, err := Parse([]byte(small+fmt.Sprintf(anywhere, ", admin_token: token")), "x.yaml"); err != nil {
		t.Errorf("with a token: %v", err)
	}
}

// Constants that other packages use agree with what is declared.
func TestDeclaredDefaultsAgree(t *testing.T) {
	f, err := Parse([]byte(small), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ got, want any }{
		{f.Server.HTTP, DefaultHTTP}, {f.Server.GRPC, DefaultGRPC}, {f.Server.Admin, DefaultAdmin},
		{f.Models.Limit, limits.Models},
		{f.Models.Control, ControlNone}, {f.Apps[0].QueueLimit, DefaultQueueLimit},
	} {
		if x.got != x.want {
			t.Errorf("declared is %v, the constant %v", x.got, x.want)
		}
	}
}

// Where the file says no queue_limit, one that demands much has room for twice what comes within its objective.
func TestQueueLimitFollowsTheDemand(t *testing.T) {
	for _, x := range []struct {
		more string
		want int
	}{
		{"", DefaultQueueLimit}, {"demand: 10, ", DefaultQueueLimit}, {"demand: 50000, ", 5000},
		{"demand: 50000, queue_limit: 7, ", 7},
	} {
		f, err := Parse([]byte(strings.Replace(small, "slo:", x.more+"slo:", 1)), "sluice.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Apps[0].QueueLimit; got != x.want {
			t.Errorf("%q: %d, want %d", x.more, got, x.want)
		}
	}
}
