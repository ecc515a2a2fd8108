package web

import "fmt"

// errorsVI are sentences that code makes in English (problems, and the
// reasons of package explain) in Vietnamese, by their English form; and, for
// words that fill such a form, by the word. A test holds them against the code.
var errorsVI = map[string]string{
	// What a job waits for (package explain).
	"Its worker %s has not renewed the lease: it died or was cut off. Another worker takes the job when the lease has run out.": "Tiến trình %s của nó không gia hạn quyền giữ: nó đã chết hoặc mất kết nối. Khi hết hạn, một tiến trình khác sẽ nhận công việc.",
	"It is running: attempt %d of %d, on %s.":         "Đang chạy: lần thử %d trên %d, tại %s.",
	"It is running: attempt %d of %d, on %s, for %s.": "Đang chạy: lần thử %d trên %d, tại %s, được %s.",
	"a worker":                           "một tiến trình",
	"It is done and will not run again.": "Đã xong và sẽ không chạy lại.",
	"A person cancelled it. Run it again to enqueue it again.":                    "Có người đã huỷ. Hãy chạy lại để đưa vào hàng đợi lần nữa.",
	"It failed for good after %d attempts: %s. Retry it once the cause is fixed.": "Thất bại hẳn sau %d lần thử: %s. Hãy thử lại khi đã sửa nguyên nhân.",
	"no error was recorded": "không có lỗi nào được ghi lại",
	"no details":            "không có chi tiết",
	"It belongs to PHP (%s): only the CMS's own queue worker (php artisan queue:work) runs it. This service never touches it.":  "Thuộc về PHP (%s): chỉ tiến trình hàng đợi của CMS (php artisan queue:work) chạy nó. Dịch vụ này không bao giờ động vào.",
	"Its payload is not JSON, so that no worker can tell its type. Correct the row, or remove the job: cmsjobs jobs cancel %s.": "Dữ liệu của nó không phải JSON nên không worker nào biết loại của nó. Hãy sửa dòng đó hoặc xoá công việc: cmsjobs jobs cancel %s.",
	"No handler here is registered for %q. Check the spelling, or remove the job.":                                              "Ở đây không có trình xử lý nào cho %q. Hãy kiểm tra chính tả hoặc xoá công việc.",
	"Jobs are switched off (JOBS_ENABLED=false): nothing is taken from the queues.":                                             "Công việc đang bị tắt (JOBS_ENABLED=false): không có gì được lấy khỏi hàng đợi.",
	"Attempt %d of %d failed (%s). The next one is due in %s.":                                                                  "Lần thử %d trên %d thất bại (%s). Lần kế tiếp sau %s.",
	"It is not due yet: %s to go.":                                                                               "Chưa đến hạn: còn %s.",
	"The queue %s is paused. Continue it to let its jobs run.":                                                   "Hàng đợi %s đang tạm dừng. Hãy cho nó tiếp tục để công việc chạy.",
	"%s is down (%s). Jobs that need it wait without losing attempts; the next probe is in %s.":                  "%s không hoạt động (%s). Công việc cần đến nó sẽ chờ mà không mất lần thử; lần dò kế tiếp sau %s.",
	"At most %d of %s may run at once, and %d do.":                                                               "Cùng lúc chỉ được chạy %d %s, và hiện có %d.",
	"No worker is alive. Start one: cmsjobs work.":                                                               "Không có tiến trình nào đang chạy. Hãy khởi động: cmsjobs work.",
	"Of %d live workers none listens to the queue %s. Start one that does: cmsjobs work --queue=%s.":             "Trong %d tiến trình đang chạy, không có tiến trình nào nghe hàng đợi %s. Hãy khởi động: cmsjobs work --queue=%s.",
	"No worker of the queue %s has a handler for %s. They may be of an older version: restart them.":             "Không tiến trình nào của hàng đợi %s xử lý được %s. Có thể chúng là phiên bản cũ: hãy khởi động lại.",
	"All slots of the workers that can run it (%d) are busy. Raise the number of slots or start another worker.": "Mọi chỗ của các tiến trình chạy được nó (%d) đều bận. Hãy tăng số chỗ hoặc thêm tiến trình.",
	"It is due; 1 job is before it in the queue %s.":                                                             "Đã đến hạn; trước nó còn 1 công việc trong hàng đợi %s.",
	"It is due; %d jobs are before it in the queue %s.":                                                          "Đã đến hạn; trước nó còn %d công việc trong hàng đợi %s.",
	"It is due and nothing holds it back: a worker takes it at its next poll.":                                   "Đã đến hạn và không có gì cản trở: tiến trình sẽ nhận nó ở lần hỏi kế tiếp.",

	// Refusals.
	"Name or password is wrong, or the account has no right here.":                                                          "Tên hoặc mật khẩu sai, hoặc tài khoản không có quyền ở đây.",
	"There is no type %q here.":                                                                                             "Ở đây không có loại công việc %q.",
	"There is no type %q here. Known are %s.":                                                                               "Ở đây không có loại công việc %q. Các loại có: %s.",
	"The action is retry, delete, cancel or run_now, not %q.":                                                               "Hành động là retry, delete, cancel hoặc run_now, không phải %q.",
	`The selection is empty. To choose all jobs say so: {"all": true}.`:                                                     `Chưa chọn gì. Để chọn tất cả công việc: {"all": true}.`,
	"Jobs are disabled: enqueue them one by one, each runs at once.":                                                        "Công việc đang bị tắt: hãy đưa vào từng cái một, mỗi cái chạy ngay.",
	"delay is in seconds, from 0 to ten years.":                                                                             "Thời gian chờ tính bằng giây, từ 0 đến mười năm.",
	"priority must fit into 32 bits.":                                                                                       "Độ ưu tiên phải vừa 32 bit.",
	"This needs the scope %q; %s has %q.":                                                                                   "Việc này cần quyền %q; %s có %q.",
	"More than %d requests a second. Wait, or enqueue many jobs in one request (POST /api/v1/jobs/batch).":                  "Hơn %d yêu cầu mỗi giây. Hãy đợi, hoặc xếp nhiều công việc trong một yêu cầu (POST /api/v1/jobs/batch).",
	"This request comes from another site and is refused.":                                                                  "Yêu cầu này đến từ trang khác nên bị từ chối.",
	"The form is too old or not ours (%s). Load the page again.":                                                            "Biểu mẫu đã cũ hoặc không phải của chúng tôi (%s). Hãy tải lại trang.",
	"%q may not be enqueued over HTTP (allowed_types).":                                                                     "%q không được đưa vào hàng đợi qua HTTP (allowed_types).",
	"The job is running. Wait for its end, or cancel it first.":                                                             "Công việc đang chạy. Hãy đợi nó xong hoặc huỷ trước.",
	"The job cannot run again: %v.":                                                                                         "Công việc không thể chạy lại: %v.",
	"The job belongs to PHP: this service shows it and never touches it. Use the CMS's own commands (php artisan queue:…).": "Công việc thuộc về PHP: dịch vụ này chỉ hiển thị và không bao giờ động vào. Hãy dùng lệnh của CMS (php artisan queue:…).",
	"The job changed at this moment. Look again.":                                                                           "Công việc vừa thay đổi. Hãy xem lại.",
	"The job does not wait: it is %s.":                                                                                      "Công việc không đang chờ: trạng thái là %s.",
	"The job has ended (%s): there is nothing to cancel.":                                                                   "Công việc đã kết thúc (%s): không còn gì để huỷ.",
	"A running job cannot be deleted. Cancel it first.":                                                                     "Không thể xoá công việc đang chạy. Hãy huỷ trước.",
	"The job has ended (%s); the history is kept until its time is over.":                                                   "Công việc đã kết thúc (%s); lịch sử được giữ cho đến hết thời hạn.",
	"The job has not failed: it is %s.":                                                                                     "Công việc chưa thất bại: trạng thái là %s.",
	"A job of %s cannot be enqueued here.":                                                                                  "Không thể đưa công việc loại %s vào hàng đợi ở đây.",
	"The form cannot be read.":                                                                                              "Không đọc được biểu mẫu.",
	"%s must be a whole number, not %q.":                                                                                    "%s phải là số nguyên, không phải %q.",
	"The further fields must be a JSON object.":                                                                             "Các trường thêm phải là một đối tượng JSON.",
	"%s must be %s.": "%s phải là %s.",
	"a number":       "một số",
	"true or false":  "true hoặc false",
	"Name the cause whose job is to be tried.":                          "Hãy chọn nguyên nhân mà công việc của nó sẽ được thử.",
	"The address must begin with https:// and have at most 2000 bytes.": "Địa chỉ phải bắt đầu bằng https:// và dài tối đa 2000 byte.",
	"The payload is not JSON: %v.":                                      "Dữ liệu không phải JSON: %v.",
	"The payload is not JSON.":                                          "Dữ liệu không phải JSON.",
	"%s stands for a secret. Write the secret there, or change nothing else: only administrators may change other fields beside it.": "%s thay cho một bí mật. Hãy ghi bí mật vào đó, hoặc đừng đổi gì khác: chỉ quản trị viên được đổi các trường bên cạnh.",
	"This token may not make jobs of %q run, only of %q.":                                                                            "Mã này không được cho công việc loại %q chạy, chỉ loại %q.",
	"Searching the texts of jobs needs the scope %q.":                                                                                "Tìm trong nội dung công việc cần quyền %q.",
	"%q is for administrators.":                                               "%q chỉ dành cho quản trị viên.",
	"Jobs of %q are made by the service itself: nobody enqueues them.":        "Công việc loại %q do chính dịch vụ tạo ra: không ai đưa chúng vào hàng đợi.",
	"Whoever makes a job run needs the scope %q; %s has %q.":                  "Ai cho công việc chạy cần quyền %q; %s có %q.",
	"The job cannot run again, its payload is not kept or no longer fits: %s": "Công việc không thể chạy lại, dữ liệu của nó không được lưu hoặc không còn phù hợp: %s",
	"%s stands where the original has no value. Write the value there.":       "%s đứng ở nơi bản gốc không có giá trị. Hãy ghi giá trị vào đó.",
	"The mail has no HTML body, or bodies are not kept.":                      "Thư không có nội dung HTML, hoặc nội dung không được lưu.",
	"%q is no mail address.":                                                  "%q không phải địa chỉ thư.",
	"Choose pause, continue, reset or save.":                                  "Hãy chọn tạm dừng, tiếp tục, đặt lại hoặc lưu.",
	"Nothing was changed.":                                                    "Không có gì thay đổi.",
	"%s must be a day as 2026-11-21, not %q.":                                 "%s phải là ngày như 2026-11-21, không phải %q.",
	"This installation has no %s: the part is not configured.":                "Bản cài đặt này không có %s: phần này chưa được cấu hình.",
	"list of workers":  "danh sách tiến trình",
	"backups":          "bản sao lưu",
	"mail log":         "nhật ký thư",
	"suppression list": "danh sách chặn gửi",
	"media":            "phần ảnh",
	"analytics":        "phần thống kê",
	"webhooks":         "webhook",
	"schedule":         "lịch chạy",
	"restoring over the web; use cmsjobs restore": "phần khôi phục qua web; hãy dùng cmsjobs restore",
	"The template has no HTML.":                   "Mẫu thư không có HTML.",
	"These credentials are not valid.":            "Thông tin đăng nhập không hợp lệ.",
	"The place of the backups does not answer. See to its address, its keys and the network, then try again. It says: %s": "Nơi lưu bản sao lưu không trả lời. Hãy kiểm tra địa chỉ, khóa truy cập và mạng, rồi thử lại. Lý do: %s",
	"There is nothing with this id.": "Không có gì với mã này.",
	"The database is unavailable. Try again in a few seconds; a request with the same Idempotency-Key never makes a second job. If it lasts, start the database or check database.dsn: cmsjobs doctor names the cause.": "Cơ sở dữ liệu không sẵn sàng. Hãy thử lại sau vài giây; yêu cầu có cùng Idempotency-Key không bao giờ tạo công việc thứ hai. Nếu vẫn vậy, hãy khởi động cơ sở dữ liệu hoặc kiểm tra database.dsn: cmsjobs doctor cho biết nguyên nhân.",
	"The answer took too long. Try again, or ask for less.":                                 "Trả lời quá lâu. Hãy thử lại hoặc hỏi ít hơn.",
	"Something went wrong here. The log has the details under this answer's instance.":      "Đã có lỗi ở đây. Nhật ký có chi tiết dưới mã của trả lời này.",
	"The cursor is not one of ours.":                                                        "Con trỏ trang không phải của chúng tôi.",
	"The filter is too long: %d values a field at most.":                                    "Bộ lọc quá dài: tối đa %d giá trị mỗi trường.",
	"The filter is not UTF-8 text.":                                                         "Bộ lọc không phải văn bản UTF-8.",
	"No status is named %q; use queued, processing, completed, failed or cancelled.":        "Không có trạng thái %q; hãy dùng queued, processing, completed, failed hoặc cancelled.",
	"%s must be a time as 2026-11-21T15:04:05Z, a day, or a length like 24h or 3d; not %q.": "%s phải là thời điểm như 2026-11-21T15:04:05Z, một ngày, hoặc độ dài như 24h hoặc 3d; không phải %q.",
	"Not Found":             "Không tìm thấy",
	"Conflict":              "Xung đột",
	"Forbidden":             "Không được phép",
	"Unprocessable Entity":  "Dữ liệu không hợp lệ",
	"Bad Request":           "Yêu cầu không hợp lệ",
	"Internal Server Error": "Lỗi máy chủ",
	"Service Unavailable":   "Tạm thời không phục vụ được",
	"Too Many Requests":     "Quá nhiều yêu cầu",
}

// translated fills in a sentence's form in a language. What has no translation
// (an error of a library, of another room) stays English.
func translated(lang, form string, args []any) string {
	if lang != "vi" {
		return fmt.Sprintf(form, args...)
	}
	if text, known := errorsVI[form]; known {
		form = text
	}
	local := make([]any, len(args))
	for i, arg := range args {
		local[i] = arg
		if word, isText := arg.(string); isText && errorsVI[word] != "" {
			local[i] = errorsVI[word]
		}
	}
	return fmt.Sprintf(form, local...)
}

// in is a problem's detail in a language.
func (p *Problem) in(lang string) string {
	if p.form == "" || fmt.Sprintf(p.form, p.args...) != p.Detail {
		return p.Detail // something was added to it
	}
	return translated(lang, p.form, p.args)
}
