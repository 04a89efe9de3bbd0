"""Text reports of a profile, and the same content for programs.

Only lays out results: `deepcontext.profiler.summaries` computes everything that other views share.
"""

from deepcontext.ui.report.machine import report_to_dict
from deepcontext.ui.report.processes import print_process_summary, print_processes
from deepcontext.ui.report.text import render_report, render_summary
from deepcontext.ui.sections.jobs import job_to_dict

__all__ = [
    "job_to_dict",
    "print_process_summary",
    "print_processes",
    "render_report",
    "render_summary",
    "report_to_dict",
]
