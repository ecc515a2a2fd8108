package cms

import (
	"maps"
	"strings"
	"testing"
)

func TestParseEnvReadsWhatLaravelReads(t *testing.T) {
	got, err := ParseEnv(strings.NewReader("\ufeff# comment\nAPP_NAME=\"My \\\"Site\\\"\"\nexport APP_ENV=production " +
		"# here\nAPP_URL=https://a.example/\n" +
		"DB_PASSWORD='p#${x}'\nREDIS_PASSWORD=null\nMAIL_FROM_NAME=\"${APP_NAME}\"\nEMPTY=\nHASH=a#b\nUNKNOWN=${NOPE}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Env{"APP_NAME": `My "Site"`, "APP_ENV": "production", "APP_URL": "https://a.example/",
		"DB_PASSWORD":    "p#${x}",
		"REDIS_PASSWORD": "", "MAIL_FROM_NAME": `My "Site"`, "EMPTY": "", "HASH": "a#b", "UNKNOWN": "${NOPE}"}
	if !maps.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if url := got.siteURL(); url != "https://a.example" {
		t.Errorf("siteURL = %q", url)
	}
}

func TestParseEnvNamesTheLineThatIsWrong(t *testing.T) {
	for _, bad := range []string{"A=\"x", "A='x", "no equals sign"} {
		if _, err := ParseEnv(strings.NewReader("OK=1\n" + bad)); err == nil ||
			!strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseEnv(f *testing.F) {
	f.Add("A=\"${B}\\n\"\nB='x' # c")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := ParseEnv(strings.NewReader(text))
		if err == nil && env == nil {
			t.Fatal("neither an Env nor an error")
		}
	})
}
