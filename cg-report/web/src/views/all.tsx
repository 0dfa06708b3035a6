// V1 with all its columns, as a view of a pane.

import { Functions } from "./functions.tsx";

export function AllFunctions() {
    return <Functions wide={true} />;
}
