"""Questions whose try has ended in, as Airflow archives them; room for those of the next try out.

Airflow (3.3) lets the live question move on to the next try of its task, and then only takes the answer out of it: whoever
is asked again, be it after a clear, would read the words of the first question, and decide about another review by them.
"""

import sys
from typing import Any, Final

_ARCHIVE: Final = "airflow.models.hitl_history"


def let_questions_end_with_their_try() -> None:
    """Have a question removed once it is archived with its try, where Airflow's own database is at hand.

    That is in the API server and in the scheduler; a worker has loaded nothing of it. Where it is not done, answers that are
    given by an outdated form are refused: the form names its review.
    """
    if _ARCHIVE not in sys.modules:
        return
    from airflow.models.hitl_history import HITLDetailHistory
    from sqlalchemy import event

    if not event.contains(HITLDetailHistory, "after_insert", _remove_live):
        event.listen(HITLDetailHistory, "after_insert", _remove_live)


def _remove_live(_: Any, connection: Any, archived: Any) -> None:
    from airflow.models.hitl import HITLDetail
    from sqlalchemy import delete

    connection.execute(delete(HITLDetail).where(HITLDetail.ti_id == archived.ti_history_id))
