package dump

import (
	"regexp"
)

var definer = regexp.MustCompile("^(CREATE (?:OR REPLACE )?(?:ALGORITHM=\\w+ " +
	")?)(DEFINER=(?:`(?:[^`]|``)*`|\\w+)(?:@(?:`(?:[^`]|``)*`|\\w+))?)")

// hideDefiner puts the definer into a comment that servers read and tools can
// strip, where the restoring user may not act for others.
func hideDefiner(create string) string { return definer.ReplaceAllString(create, "$1/*!50013 $2 */") }

// Definer finds such a comment.
var Definer = regexp.MustCompile("/\\*!50013 DEFINER=(?:`(?:[^`]|``)*`|\\w+)(?:@(?:`(?:[^`]|``)*`|\\w+))? \\*/")
