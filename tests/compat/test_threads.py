"""Backward from many threads: no addition is lost, and a graph is freed once."""

import threading

import fgrad.compat as torch
from tests.threads import needs_fork, while_forking, with_threads


def run_in_threads(fun, count=10):
    failures = []

    def run():
        try:
            fun()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failures


def test_no_addition_to_a_leaf_is_lost():
    x = torch.ones(5, 5, requires_grad=True)

    def work():
        for _ in range(50):
            ((x + 3) * (x + 4) * 0.5).sum().backward()

    assert run_in_threads(work) == []
    expected = torch.full((5, 5), 500 * (1 + 3.5))
    torch.testing.assert_close(x.grad, expected)


def test_a_shared_graph_is_walked_once():
    x = torch.ones(5, requires_grad=True)
    shared = (x * x).exp()

    failures = run_in_threads(lambda: shared.sum().backward())
    assert len(failures) < 10
    assert all("Specify retain_graph=True" in str(f) for f in failures)


def test_a_shared_graph_that_is_retained():
    x = torch.ones(5, requires_grad=True)
    shared = (x * x).exp().sum()
    assert run_in_threads(lambda: shared.backward(retain_graph=True)) == []
    (g,) = torch.autograd.grad(shared, x)
    torch.testing.assert_close(x.grad, g * 10)


def test_modes_are_each_threads_own():
    seen = []
    with torch.no_grad():
        run_in_threads(lambda: seen.append(torch.is_grad_enabled()), 3)
    assert seen == [True] * 3


def test_a_forked_child_works():
    import multiprocessing
    import warnings

    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def child():
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        queue.put(x.grad.tolist())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = context.Process(target=child)
        process.start()
    assert queue.get(timeout=30) == [2.0, 2.0, 2.0]
    process.join()


@needs_fork
@with_threads
def test_forks_while_other_threads_add_to_a_leaf():
    shared = torch.ones(100_000, requires_grad=True)
    g = torch.ones(100_000)

    def job():
        x = torch.ones(3, requires_grad=True)
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0] * 3

    while_forking(lambda: (shared * 1).backward(g), job)
