// A later script: the views of jobs and ranks. It takes everything it shares from the first.

import { addViews } from "../views/later_views";
import { ProcessesView, Roles } from "./processes_view";
import { RanksView } from "./ranks_view";
import { Strip } from "./strip";

addViews({ processes: ProcessesView, ranks: RanksView, Roles, Strip });
