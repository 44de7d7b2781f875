"""What tests of the profiler share: the shape of a list of events, and what must hold of every list."""


def outline(events):
    """Return names as nested lists: `[name, [name, ...inside], ...]`."""
    return [inside(event) for event in events if event.parent is None]


def inside(event):
    """Return an event's name, followed by those inside it."""
    return [event.name, *map(inside, event.children)] if event.children else event.name


def count(events):
    """Return how often each name occurs."""
    found = {}
    for event in events:
        found[event.name] = found.get(event.name, 0) + event.count
    return found


def check_times(events):
    """Assert the laws of times: whole numbers, 0 <= self <= total, children inside parents and apart, nothing lost."""
    for event in events:
        assert event.start_ns.__class__ is int and event.end_ns.__class__ is int
        assert 0 <= event.self_ns <= event.total_ns
        assert event.self_ns == event.total_ns - sum(child.total_ns for child in event.children)
        edge = event.start_ns
        for child in event.children:
            assert child.parent is event and child.thread == event.thread
            assert edge <= child.start_ns <= child.end_ns <= event.end_ns
            edge = child.end_ns
    starts = [event.id for event in events]
    assert starts == sorted(starts) and len(set(starts)) == len(starts)
    for thread, _, start, end in events.spans:
        for event in events:
            assert event.thread != thread or start <= event.start_ns <= event.end_ns <= end or len(events.spans) > 1
    assert events.attributed_ns + events.unattributed_ns == events.wall_ns
