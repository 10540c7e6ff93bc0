"""Whether a bundle or an attestation may be written into a ledger: asked by the writer, by the rules of the resolver.

The candidates are fed to a fork of the scanner and then judged exactly as they will be when they are read back.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..events.tool import Statement
from .bundle_rules import BundleRule
from .facts import Attested, Decided, Fact, Reconciled, Responded
from .interpretation import Settled, interpret
from .scanner import Scanner

_AFTER_OBSERVATION: tuple[list[type[Fact]], ...] = ([Decided], [Responded, Decided])
_AFTER_STATEMENT: tuple[list[type[Fact]], ...] = ([], [Responded])


def broken_bundle(scanner: Scanner, facts: Sequence[Fact]) -> BundleRule | None:
    """The first rule of SPEC section 10 that a recovery bundle breaks; None when it may be written.

    Args:
        scanner: the run's state before the bundle; left as it is.
        facts: observation, outcome if there is one, decision; in this order.
    """
    observed = facts[0] if facts else None
    if not isinstance(observed, Reconciled) or [type(fact) for fact in facts[1:]] not in _AFTER_OBSERVATION:
        return BundleRule.ONE_OBSERVATION_ONE_DECISION
    after = _after(scanner, facts)
    if isinstance(after, BundleRule):
        return after
    record = after.operation(observed.operation_id)
    judged = None if record is None else interpret(record)
    return judged if isinstance(judged, BundleRule) else None


def broken_attestation(scanner: Scanner, facts: Sequence[Fact]) -> BundleRule | None:
    """The first rule of SPEC section 10 that an attestation breaks; None when it may be written. Arguments as above."""
    attested = facts[0] if facts else None
    if not isinstance(attested, Attested) or [type(fact) for fact in facts[1:]] not in _AFTER_STATEMENT:
        return BundleRule.ATTESTATION_HAS_RESPONSE
    if attested.statement == Statement.OVER and len(facts) > 1:  # says nothing of the outcome, so it brings none
        return BundleRule.ATTESTED_RESPONSE_MATCHES
    after = _after(scanner, facts)
    if isinstance(after, BundleRule):
        return after
    if attested.statement == Statement.OVER:
        return None
    record = after.operation(attested.operation_id)
    judged = None if record is None else interpret(record)
    return None if isinstance(judged, Settled) else judged or BundleRule.ATTESTATION_IS_CALLED_FOR


def _after(scanner: Scanner, facts: Sequence[Fact]) -> Scanner | BundleRule:
    """The ledger with the candidates, or what they would break in it."""
    after = scanner.fork()
    for fact in facts:
        after.feed(fact)
    return BundleRule.LEDGER_STAYS_SOUND if len(after.issues) > len(scanner.issues) else after
