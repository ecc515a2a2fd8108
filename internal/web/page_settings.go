package web

import (
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// settings are the configuration's values, secrets masked whatever came.
func (s *Server) settings() []Setting {
	if s.cfg.Settings == nil {
		return nil
	}
	return ops.Each(s.cfg.Settings(), func(x Setting) Setting {
		if (x.Secret || redact.SecretKey(x.Name[strings.LastIndexByte(x.Name, '.')+1:])) && x.Value != "" {
			x.Secret, x.Value = true, masked
		}
		x.Value = redact.Text(x.Value)
		return x
	})
}

type settingsPageData struct {
	Configured bool
	Settings   []Setting
	Changed    bool // only those that are not defaults
}

func (s *Server) settingsPage(c echo.Context) error {
	v := settingsPageData{Configured: s.cfg.Settings != nil, Settings: s.settings(), Changed: c.QueryParam("changed") != ""}
	if v.Changed {
		v.Settings = slices.DeleteFunc(v.Settings, func(x Setting) bool { return x.Origin == "default" || x.Origin == "" })
	}
	return s.show(c, "settings", "settings.title", v)
}
