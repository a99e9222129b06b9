"""The boundary search: where along an axis a label begins, found with few of a grid's cells."""

from initrate.boundary._choice import Batch, choose_batch
from initrate.boundary._crossings import Aim, Crossing, Reading, read_crossings
from initrate.boundary._curves import Curves, Floats, draw_curves
from initrate.boundary._find import FAILED, HIT, MISS, UNTRIED, Found, Labels, Shape, find
from initrate.boundary._folder import ROUNDS, SEARCH, begun_rounds, check_folder, search_folder
from initrate.boundary._picture import PICTURE, draw_picture
from initrate.boundary._result import Boundary, SearchResult, operations_by_cell
from initrate.boundary._run import TrainRound, first_batch, run_search, search
from initrate.boundary._search import Search, plan_search

__all__ = [
    "FAILED",
    "HIT",
    "MISS",
    "PICTURE",
    "ROUNDS",
    "SEARCH",
    "UNTRIED",
    "Aim",
    "Batch",
    "Boundary",
    "Crossing",
    "Curves",
    "Floats",
    "Found",
    "Labels",
    "Reading",
    "Search",
    "SearchResult",
    "Shape",
    "TrainRound",
    "begun_rounds",
    "check_folder",
    "choose_batch",
    "draw_curves",
    "draw_picture",
    "find",
    "first_batch",
    "operations_by_cell",
    "plan_search",
    "read_crossings",
    "run_search",
    "search",
    "search_folder",
]
