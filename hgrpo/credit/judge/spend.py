"""The caps: what a study may spend on a judge, counted in the file that its jobs share."""

from hgrpo.credit.judge.database import Database
from hgrpo.credit.judge.settings import Settings

_HERE = "endpoint = :endpoint AND model = :model"
_SET_ASIDE = f"""UPDATE spend SET calls = calls + 1, dollars = dollars + :aside WHERE {_HERE}
  AND (:max_calls IS NULL OR calls < :max_calls)
  AND (:max_dollars IS NULL OR dollars + :aside <= :max_dollars) RETURNING calls"""


class CapError(Exception):
    """A cap allows no further call; `reason` is "call_cap" or "dollar_cap"."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


class Spend:
    """Calls and dollars of one model at one address, over all jobs of a study.

    One statement checks the caps and changes the counts, so parallel jobs cannot pass a cap
    together. What a killed job had set aside stays counted, because it may have been billed.

    Args:
        database: the study's.
        settings: the model, its address and the caps.

    Raises:
        UserError: the file cannot be used. The methods raise it too.
    """

    def __init__(self, database: Database, settings: Settings):
        self._database = database
        self._caps = {"max_calls": settings.max_calls, "max_dollars": settings.max_dollars}
        self._judge = {"endpoint": settings.base_url, "model": settings.model}
        database.execute(
            "INSERT INTO spend VALUES (:endpoint, :model, 0, 0) ON CONFLICT DO NOTHING", self._judge
        )

    def set_aside(self, dollars: float) -> None:
        """Count a call before it starts, at an estimate of its price.

        Raises:
            CapError: the call would pass a cap; it is not counted.
        """
        if self._database.execute(_SET_ASIDE, {"aside": dollars} | self._judge | self._caps):
            return
        calls, spent = self.so_far()
        most = self._caps["max_calls"]
        reason = "call_cap" if most is not None and calls >= most else "dollar_cap"
        cap = "max_calls" if reason == "call_cap" else "max_dollars"
        raise CapError(
            reason,
            f"credit.{cap} {self._caps[cap]:g} leaves no room for another call: the study has made "
            f"{calls} for {spent:.2f} dollars ({self._database.path}, table spend)",
        )

    def settle(self, aside: float, dollars: float) -> None:
        """Replace the dollars set aside for a call by its cost."""
        if dollars != aside:
            self._database.execute(
                f"UPDATE spend SET dollars = dollars + (:dollars - :aside) WHERE {_HERE}",
                {"dollars": dollars, "aside": aside} | self._judge,
            )

    def so_far(self) -> tuple[int, float]:
        """Number of calls, and dollars spent or set aside."""
        (row,) = self._database.execute(
            f"SELECT calls, dollars FROM spend WHERE {_HERE}", self._judge
        )
        return row
