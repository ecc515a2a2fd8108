package crontab_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cmsjobs/cmsjobs/internal/crontab"
)

const table = `# the site
MAILTO=""
APP_ENV=production
*/5 * * * * /usr/bin/php /var/www/site/tool.php --fast >/dev/null 2>&1
30 6 * * 1	cd /var/www/site && php artisan newsletter:send >> /dev/null 2>&1
@daily /usr/local/bin/tool.php
* * * * * cd /var/www/site && php artisan schedule:run >> /dev/null 2>&1
@reboot /usr/bin/warm
61 * * * * /bin/true
0 4 * * * /bin/date +%F
0 5 * * *
`

func TestACrontab(t *testing.T) {
	entries, left, err := crontab.Read([]byte(table), crontab.Options{})
	if err != nil || len(entries) != 3 || len(left) != 5 {
		t.Fatalf("%+v %+v %v", entries, left, err)
	}
	text, err := crontab.YAML(entries, left)
	if err != nil {
		t.Fatal(err)
	}
	want := `external:
  commands:
    newsletter-send:
      program: /bin/sh
      args: [-c, 'cd /var/www/site && php artisan newsletter:send']
      env:
        APP_ENV: production
    php:
      program: /usr/bin/php
      args: [/var/www/site/tool.php, --fast]
      env:
        APP_ENV: production
    tool-php:
      program: /usr/local/bin/tool.php
      env:
        APP_ENV: production
schedule:
  entries:
    newsletter-send:
      cron: 30 6 * * 1
      type: command.run
      payload: {name: newsletter-send}
    php:
      cron: '*/5 * * * *'
      type: command.run
      payload: {name: php}
    tool-php:
      cron: '@daily'
      type: command.run
      payload: {name: tool-php}
`
	_, got, _ := strings.Cut(string(text), "\nexternal:")
	if "external:"+got != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	for _, why := range []string{"schedule:list --json", "@reboot is no time", "cannot be read", "program's input",
		"no command"} {
		if !strings.Contains(string(text), why) {
			t.Errorf("nothing says %q:\n%s", why, text)
		}
	}
}

func TestASystemCrontabAndLaravelsList(t *testing.T) {
	entries, left, err := crontab.Read([]byte("17 * * * * www-data /usr/bin/tool x\n17 * * * * www-data "+
		"/usr/bin/tool y\n"),
		crontab.Options{System: true})
	if err != nil || len(left) > 0 || len(entries) != 2 || entries[0].User != "www-data" ||
		entries[0].Program != "/usr/bin/tool" || entries[1].Name != "tool-2" {
		t.Errorf("%+v %+v %v", entries, left, err)
	}
	entries, left,
		err = crontab.Read([]byte(`[{"expression":"0 * * * *","command":"php artisan inspire","description":"x",
		"timezone":"UTC"},{"expression":"0 1 * * *","command":"Closure at: app/Console/Kernel.php:12"},
		{"expression":"x","command":"php artisan y"}]`), crontab.Options{Dir: "/var/www/site"})
	if err != nil || len(left) != 2 || len(entries) != 1 || entries[0].Name != "inspire" ||
		entries[0].Dir != "/var/www/site" || entries[0].Args[1] != "php artisan inspire" {
		t.Errorf("%+v %+v %v", entries, left, err)
	}
	if _, _, err := crontab.Read([]byte(`[{"expression"`), crontab.Options{}); err == nil {
		t.Error("half a list is read")
	}
}

// FuzzRead: every line becomes an entry or is named, and the result is YAML.
func FuzzRead(f *testing.F) {
	f.Add(table, false)
	f.Add("* * * * * root x", true)
	f.Add(`[{"expression":"0 * * * *","command":"php artisan a"}]`, false)
	f.Fuzz(func(t *testing.T, text string, system bool) {
		entries, left, err := crontab.Read([]byte(text), crontab.Options{System: system})
		if err != nil {
			return
		}
		out, err := crontab.YAML(entries, left)
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			External struct{ Commands map[string]any }
			Schedule struct{ Entries map[string]any }
		}
		if err := yaml.Unmarshal(out, &read); err != nil || len(read.External.Commands) != len(entries) ||
			len(read.Schedule.Entries) != len(entries) {
			t.Errorf("%v: %d entries became\n%s", err, len(entries), out)
		}
	})
}
