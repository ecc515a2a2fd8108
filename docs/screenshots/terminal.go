package main

import (
	"context"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/cmsjobs/cmsjobs/docs/screenshots/demosite"
)

// sessions are command lines whose answers are photographed, by the picture's name.
var sessions = map[string][]string{
	"cli-errors": {`cmsjobs enqueue sitemap.genrate`, `cmsjobs jobs lst`, `cmsjobs enqueue`, `cmsjobs pause emials`,
		`cmsjobs --set queue.pol=1s config check`, `cmsjobs enqueue media.processImage '{"widht":300}'`},
	"cli-completion": {`cmsjobs __complete enqueue backup.`, `cmsjobs __complete pause ''`,
		`cmsjobs __complete jobs list --status ''`, `cmsjobs __complete --set queue.po`},
	"cli-schedule": {`cmsjobs schedule change logs.cleanup --cron '30 4 * * *'`,
		`cmsjobs schedule pause sitemap.indexnow`, `cmsjobs schedule continue sitemap.indexnow`,
		`cmsjobs schedule history backup.generate --limit 5`},
	"cli-health":  {`cmsjobs health`, `cmsjobs workers`, `cmsjobs queues`, `cmsjobs doctor | grep -v ok`},
	"cli-backup":  {`cmsjobs backup create`, `cmsjobs backup list`},
	"cli-explain": {`cmsjobs jobs list --status queued`, `cmsjobs jobs explain {queued}`},
	"cli-log": {`cmsjobs enqueue cmsjobs.probe '{"fail":"the disk is full"}' --queue photographs --max-attempts 1`,
		`cmsjobs --set log.format=json work --queue photographs --stop-when-empty`},
}

// terminals photographs the sessions.
func terminals(ctx context.Context, site *demosite.Site, wanted func(name string) bool) error {
	for _, name := range slices.Sorted(maps.Keys(sessions)) {
		if !wanted(name) {
			continue
		}
		var text strings.Builder
		for _, line := range sessions[name] {
			if strings.Contains(line, "{queued}") {
				id, err := site.FirstJob(ctx, "--status=queued")
				if err != nil {
					return err
				}
				line = strings.ReplaceAll(line, "{queued}", id)
			}
			fmt.Fprintf(&text, "<b>$ %s</b>\n%s\n", html.EscapeString(line), html.EscapeString(site.Shell(ctx, line)))
		}
		page := `<!doctype html><title>terminal</title><style>body{margin:0;background:#10151c}pre{display:inline-block;` +
			`margin:0;padding:20px;color:#d5dde8;font:15px/1.45 monospace;max-width:1240px;white-space:pre-wrap}` +
			`b{color:#7fc79a}</style><pre id="t">` + strings.TrimSpace(text.String()) + `</pre>`
		address := "data:text/html;charset=utf-8," + url.PathEscape(page)
		if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
			return err
		}
		picture, err := chromedp.Run(ctx, chromedp.Screenshot("#t"))
		if err != nil {
			return err
		}
		if err := store(ctx, name, picture); err != nil {
			return err
		}
	}
	return nil
}
