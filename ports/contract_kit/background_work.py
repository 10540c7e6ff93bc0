"""The contract of `BackgroundWork`."""

from __future__ import annotations

import pytest

from ...domain.events.outside import JobStatus
from ..background_work import BackgroundWork, JobHandle, JobRunning, JobSettled, JobUnknown


class BackgroundWorkContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def jobs(self) -> BackgroundWork:
        """The implementation."""
        pytest.fail("override the fixture `jobs`")

    @pytest.fixture
    def running(self, jobs: BackgroundWork) -> JobHandle:
        """A job that runs until it is ended."""
        pytest.fail("override the fixture `running`")

    @pytest.fixture
    def completed(self, jobs: BackgroundWork) -> JobHandle:
        """A job that ended with exit code 0."""
        pytest.fail("override the fixture `completed`")

    @pytest.fixture
    def killed(self, jobs: BackgroundWork) -> JobHandle:
        """A job that was ended by signal 9."""
        pytest.fail("override the fixture `killed`")

    @pytest.fixture
    def never_started(self) -> JobHandle:
        """A handle that was never given out."""
        pytest.fail("override the fixture `never_started`")

    def test_a_job_that_runs_is_seen_with_its_processes(self, jobs: BackgroundWork, running: JobHandle) -> None:
        for _ in range(2):
            (seen,) = jobs.observe([running])
            assert isinstance(seen, JobRunning)
            assert seen.processes

    def test_a_job_that_ended_well_is_seen_so_each_time(self, jobs: BackgroundWork, completed: JobHandle) -> None:
        for _ in range(2):
            assert jobs.observe([completed]) == [JobSettled(JobStatus.COMPLETED, 0, None)]

    def test_a_job_that_was_killed_never_looks_as_if_it_had_ended_well(
        self, jobs: BackgroundWork, killed: JobHandle
    ) -> None:
        for _ in range(2):
            assert jobs.observe([killed]) == [JobSettled(JobStatus.FAILED, None, 9)]

    def test_an_unknown_handle_is_neither_running_nor_settled(
        self, jobs: BackgroundWork, never_started: JobHandle
    ) -> None:
        assert jobs.observe([never_started]) == [JobUnknown()]

    def test_answers_stand_in_the_order_of_the_handles(
        self, jobs: BackgroundWork, completed: JobHandle, never_started: JobHandle, killed: JobHandle
    ) -> None:
        one, two, three = jobs.observe([killed, never_started, completed])
        assert isinstance(one, JobSettled)
        assert isinstance(two, JobUnknown)
        assert isinstance(three, JobSettled)
        assert jobs.observe([]) == []

    def test_ending_a_job_ends_it_and_says_how(self, jobs: BackgroundWork, running: JobHandle) -> None:
        ended = jobs.end(running, 30.0)
        assert isinstance(ended, JobSettled)
        assert ended.status is not JobStatus.COMPLETED
        assert jobs.observe([running]) == [ended]

    def test_ending_what_has_ended_changes_nothing(self, jobs: BackgroundWork, completed: JobHandle) -> None:
        assert jobs.end(completed, 30.0) == JobSettled(JobStatus.COMPLETED, 0, None)
