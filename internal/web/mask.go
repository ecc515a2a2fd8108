package web

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// masked stands where a secret was.
const masked = redact.Mask

// viewer is the view that the caller may have: who may not operate sees no
// texts of mails, no deliveries, no addresses of the network inside.
func (s *Server) viewer(c echo.Context) ops.Viewer {
	if who(c).Scopes.Has(access.Operate) {
		return s.viewerFor(redact.Operators)
	}
	return s.viewerFor(redact.Readers)
}

// public is the view of what goes to listeners of any right.
func (s *Server) public() ops.Viewer { return s.viewerFor(redact.Readers) }

func (s *Server) viewerFor(to redact.Audience) ops.Viewer {
	return ops.Viewer{Mask: s.mask, To: to, Registry: s.cfg.Registry}
}

// known says whether a name is a type here.
func (s *Server) known(name string) bool {
	_, ok := s.cfg.Registry.Known(name)
	return ok
}

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
