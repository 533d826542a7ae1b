"""The one exception that carries a sentence for the user."""


class BertScopeError(Exception):
    """Something the user can mend. ``str(error)`` is one clear sentence, shown as it stands.

    Anything else that is raised is a defect of BertScope and keeps its traceback.
    """
