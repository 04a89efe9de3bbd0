// A later script: the time line of the kept steps. It takes everything it shares from the first.

import { addViews } from "../views/later_views";
import { TimeLineView } from "./time_line_view";

addViews({ timeline: TimeLineView });
