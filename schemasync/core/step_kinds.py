"""What the steps of plans are called: by these words plans, files of them and apply know what is to be done."""

from __future__ import annotations

from typing import Final

CREATE_DATABASE: Final = "create_database"
DROP_TABLE: Final = "drop_table"
CREATE_TABLE: Final = "create_table"
RESTORE_TABLE: Final = "restore_table"
REPAIR_COLUMNS: Final = "repair_columns"
REBUILD: Final = "rebuild"
ADD_COLUMNS: Final = "add_columns"
REPLACE_VIEW: Final = "replace_view"
DROP_OLD_VIEW: Final = "drop_old_view"
DROP_OLD_HISTORY: Final = "drop_old_history"
SET_VERSION: Final = "set_version"
ADMIT: Final = "admit"
REPAIR_PARTITIONS: Final = "repair_partitions"
RESTORE_VIEW: Final = "restore_view"
RECORD_HISTORY: Final = "record_history"
"""It has no SQL: the directory's name and the time of the apply are not known before."""
