from datetime import timedelta

from harbor_queue import retry


def test_delay_doubles():
    assert retry.delay(1, "j1") == 2 * retry.delay(0, "j1")


def test_first_delay():
    assert timedelta(seconds=15) <= retry.delay(0, "j1") <= timedelta(seconds=25)


def test_replay_gives_the_same_delays():
    first = [retry.delay(attempt, "j7") for attempt in range(6)]
    assert [retry.delay(attempt, "j7") for attempt in range(6)] == first
