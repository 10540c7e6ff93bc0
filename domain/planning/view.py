"""What the gates share: facts, and what is worked out from them once."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..budgets import NOTHING, Used
from ..events.run import Budgets, ExecutionProfile
from ..replay.history import Replay
from ..replay.origin import origin_of
from ..replay.segment import Segment
from ..replay.versions import NEWEST
from .facts import Drift, PlanFacts, SegmentFacts
from .lineage import Histories
from .outcome import Note
from .survey import Survey


@dataclass(slots=True)
class View:
    """Facts, with the lineage surveyed and projected, and the notes that gates leave.

    Attributes:
        lineage: what could be read of it, oldest first.
        surveys: one per segment of `lineage`.
        projected: one per segment of `lineage`.
        histories: None where a segment is blocked or could not be read, or an earlier turn is blocked.
        drift: what differs and was accepted, with what a person should know of it.
    """

    facts: PlanFacts
    lineage: tuple[SegmentFacts, ...]
    surveys: list[Survey]
    projected: list[Segment]
    histories: Histories | None = None
    notes: list[Note] = field(default_factory=list)
    drift: dict[Drift, str] = field(default_factory=dict)
    _replay: Replay | None = None

    def replay(self) -> Replay | None:
        """The whole history for whoever would be shown it now, None where it cannot be made.

        Made once, after the edges were verified with the histories that it goes on from.
        """
        shown_to = self.facts.profile or self.recorded_profile
        if self._replay is None and self.histories is not None and shown_to is not None:
            history = self.histories.before(len(self.lineage), origin_of(shown_to), NEWEST.version)
            self._replay = history.replay()
        return self._replay

    def used(self) -> Used:
        """What the lineage has used."""
        return sum((survey.spending.used() for survey in self.surveys), NOTHING)

    def budgets(self) -> Budgets | None:
        """What the turn may use: as was said now, else as the newest run says that said anything."""
        recorded = (survey.spending.budgets for survey in reversed(self.surveys))
        return self.facts.budgets or next((budgets for budgets in recorded if budgets is not None), None)

    @property
    def source(self) -> SegmentFacts | None:
        """The run that would be continued."""
        return self.facts.source

    @property
    def source_survey(self) -> Survey | None:
        """The survey of the source."""
        return None if self.source is None else self.surveys[-1]

    @property
    def recorded_profile(self) -> ExecutionProfile | None:
        """What the source was executed with."""
        opening = None if self.source is None else self.source.opening
        return None if opening is None else opening.profile


def view_of(facts: PlanFacts) -> View:
    """Work out what the gates share."""
    lineage = facts.segments
    earlier = () if facts.earlier is None else facts.earlier.segments
    histories = Histories(lineage, earlier)
    projected = histories.projected(NEWEST.version)
    view = View(facts, lineage, [segment.survey for segment in lineage], projected)
    blocked = any(segment.blocked for segment in projected) or bool(facts.earlier and facts.earlier.blocked)
    if lineage and not blocked and len(lineage) == len(facts.lineage):
        view.histories = histories
    return view
