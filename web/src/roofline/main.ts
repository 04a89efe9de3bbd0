// A later script: the view of the roofline. It takes everything it shares from the first.

import { addViews } from "../views/later_views";
import { RooflineView } from "./roofline_view";

addViews({ roofline: RooflineView });
