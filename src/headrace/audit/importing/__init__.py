"""Moving another system's ``audit_logs`` into the trail, by document 001's mapping."""

from headrace.audit.importing.importer import ImportPlan, ImportReport, import_trail, rename_to_backup

__all__ = ["ImportPlan", "ImportReport", "import_trail", "rename_to_backup"]
