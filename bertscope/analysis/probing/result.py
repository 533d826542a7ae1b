"""What a study found: task × layer × step × seed, and what may be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from bertscope.analysis.probing import result_tables
from bertscope.analysis.probing.measured import Measured


@dataclass
class Result(Measured):
    """The measurements with their tables, each computed when it is asked for."""

    @cached_property
    def summary(self) -> pd.DataFrame:
        """See ``result_tables.summary``."""
        return result_tables.summary(self)

    @cached_property
    def centres(self) -> pd.DataFrame:
        """See ``result_tables.centres``."""
        return result_tables.centres(self)

    @cached_property
    def mixes(self) -> pd.DataFrame:
        """See ``result_tables.mixes``."""
        return result_tables.mixes(self)

    @cached_property
    def onsets(self) -> pd.DataFrame:
        """See ``result_tables.onsets``."""
        return result_tables.onsets(self)
