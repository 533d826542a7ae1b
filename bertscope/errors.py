"""The exception that carries a sentence for the user."""


class BertScopeError(Exception):
    """Something the user can mend. ``str(error)`` is one clear sentence, shown as it stands.

    Anything else that is raised is a defect of BertScope and keeps its traceback.
    """


class CorpusGone(BertScopeError):
    """The prepared corpus of ``run`` is not here; ``analysis.prepared.again`` can make it where its source
    still is."""

    def __init__(self, run):
        super().__init__(f"The prepared corpus of run {run.name!r} is no longer here.")
        self.run = run
