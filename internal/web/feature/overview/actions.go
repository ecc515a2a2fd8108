package overview

import (
	"net/url"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

const here = "/admin"

// quickActions are what people come for, of those that this person may do and this
// service can. The routes behind them check the right again.
func quickActions(req *web.Request) []web.Action {
	var list []web.Action
	for _, a := range []web.Action{
		web.StartAction(req.Text("backups.now"), "backups", here, "backup.generate", ""),
		web.StartAction(req.Text("action.sitemap"), "sitemap", here, "sitemap.generate", `{"force":true}`),
		{Text: req.Text("quick.mail"), Icon: "send", Path: "/admin/enqueue?type=mail.send", Link: true,
			Scope: access.Enqueue, Type: "mail.send"},
		web.StartAction(req.Text("usage.cache.clear"), "bolt", here, "cache.clear", ""),
		{Text: req.Text("enqueue.title"), Icon: "plus", Path: "/admin/enqueue", Link: true, Scope: access.Enqueue},
		{Text: req.Text("quick.pause"), Icon: "pause", Path: "/admin/queues", Link: true, Scope: access.Operate},
	} {
		if may(req, a) {
			list = append(list, a)
		}
	}
	return list
}

func may(req *web.Request, a web.Action) bool {
	return req.May(a.Scope) && (a.Type == "" || req.Known(a.Type) && req.MayRunType(a.Type) == nil)
}

// fix is what repairs a condition: a form, or a link to the page where people do
// it; nil is neither.
func (s healthInputs) fix(x web.Condition) *web.Action {
	var a web.Action
	switch x.Name {
	case "no_backup":
		a = web.StartAction(s.lang.Text("backups.now"), "backups", here, "backup.generate", "")
	case "verification_old":
		a = web.StartAction(s.lang.Text("action.verify"), "shield", here, "backup.verify", "")
	case "stalled_jobs", "history_growing":
		a = web.StartAction(s.lang.Text("fix.clean"), "trash", here, "queue.clean", "")
	}
	if a.Type != "" && s.may(a) {
		return &a
	}
	return s.show(x.Page)
}

// show is a link to the page behind a condition.
func (s healthInputs) show(page string) *web.Action {
	if page == "" {
		return nil
	}
	return &web.Action{Text: s.lang.Text("fix.show"), Icon: "next", Path: page, Link: true, Scope: access.Read}
}

// resume lets a paused queue go on.
func (s healthInputs) resume(queue string) *web.Action {
	a := web.Action{Text: s.lang.Text("queues.continue"), Icon: "play", Back: here, Scope: access.Operate,
		Path: "/admin/queues/" + url.PathEscape(queue) + "/continue"}
	if !s.may(a) {
		return s.show("/admin/queues")
	}
	return &a
}
