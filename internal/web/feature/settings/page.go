package settings

import (
	"net/http"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// SettingList is the answer of a list.
type SettingList = ops.Items[web.Setting]

func listSettings(req *web.Request) error {
	return req.JSON(http.StatusOK, SettingList{Items: req.Settings()})
}

type settingsPageData struct {
	Configured bool
	Settings   []web.Setting
	Changed    bool // only those that are not defaults
}

func settingsPage(req *web.Request) error {
	list := req.Settings()
	v := settingsPageData{Configured: list != nil, Settings: list, Changed: req.QueryParam("changed") != ""}
	if v.Changed {
		v.Settings = slices.DeleteFunc(v.Settings, func(x web.Setting) bool {
			return x.Origin == "default" || x.Origin == ""
		})
	}
	return req.Show(web.PageView{Name: "settings", Data: v, Ready: true})
}
