"""Probing: what can a linear classifier read from each layer? See ``probe``."""

from bertscope.analysis.probing.gold import Gold, data
from bertscope.analysis.probing.probe import ProbeConfig, ProbeResult, probe, result_key
from bertscope.analysis.probing.splits import split_by_document
from bertscope.analysis.probing.tasks import TaskInfo, available_tasks, title

__all__ = ["Gold", "ProbeConfig", "ProbeResult", "TaskInfo", "available_tasks", "data", "probe",
           "result_key", "split_by_document", "title"]
