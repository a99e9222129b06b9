"""The report of a study: one offline page, and figures fit for a paper."""

from initrate.report._build import FIGURES, PAGE, build_report, check_report_place
from initrate.report._colours import LabelStyle, label_style
from initrate.report._maps import SEEN_THRESHOLD
from initrate.report._preset import origin_of
from initrate.report._words import axis_words, count_of, duration, share, text_of
from initrate.report.demo import demo_config, open_demo

__all__ = [
    "FIGURES",
    "PAGE",
    "SEEN_THRESHOLD",
    "LabelStyle",
    "axis_words",
    "build_report",
    "check_report_place",
    "count_of",
    "demo_config",
    "duration",
    "label_style",
    "open_demo",
    "origin_of",
    "share",
    "text_of",
]
