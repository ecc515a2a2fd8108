package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

const liveBeat = 15 * time.Second

func (s *Server) events(c echo.Context) error {
	ch, end, ok := s.live.listen(caller(who(c), access.Network(c.RealIP())))
	if !ok {
		p := httpError(http.StatusServiceUnavailable, "Too many listen to live changes. Try again later.")
		p.retryAfter = 30
		return p
	}
	defer end()
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back
	control := http.NewResponseController(c.Response())
	c.Response().WriteHeader(http.StatusOK)
	if _, err := fmt.Fprint(c.Response(), "retry: 3000\n\n"); err != nil {
		return nil
	}
	return s.stream(c, ch, control)
}

// stream writes events until the listener leaves. An end of the connection is
// no fault.
func (s *Server) stream(c echo.Context, ch <-chan event, control *http.ResponseController) error {
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	for {
		if err := control.Flush(); err != nil {
			return nil
		}
		var err error
		select {
		case <-c.Request().Context().Done():
			return nil
		case e, open := <-ch:
			if !open {
				return nil
			}
			_, err = fmt.Fprintf(c.Response(), "event: %s\ndata: %s\n\n", e.Name, e.Data)
		case <-beat.C:
			// Rights may have been taken away since.
			p, again := s.identify(c)
			if again != nil || !s.may(p, Route{Scope: "read"}) {
				return nil
			}
			// A named event, not a comment: the page measures silence by it.
			_, err = fmt.Fprint(c.Response(), "event: beat\ndata: {}\n\n")
		}
		if err != nil {
			return nil
		}
	}
}
