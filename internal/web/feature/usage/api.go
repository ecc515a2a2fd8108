package usage

import (
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) usage(r *web.Request) error {
	items, err := h.port.StorageUsage(r.Ctx())
	if err != nil {
		return fmt.Errorf("measuring sizes: %w", err)
	}
	return r.JSON(http.StatusOK, UsageList{Items: ops.Each(items, func(i UsageItem) UsageItem { return i })})
}
