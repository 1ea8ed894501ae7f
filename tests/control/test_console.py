"""The console in a real browser: what a person sees and does (control.md, Client and console)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.control.browsing import Console, ServedProcess, browser, served_process


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests here."""
    with browser() as running:
        yield running


@pytest.fixture
def served(chromium: Any, tmp_path: Path) -> Iterator[ServedProcess]:
    """A scripted runtime; only where there is a browser."""
    with served_process(tmp_path) as there:
        yield there


def test_an_agent_is_made_and_its_answer_streams(chromium: Any, served: ServedProcess) -> None:
    console = Console(chromium, served.url)
    assert "t" * 20 not in console.page.evaluate("location.href")
    console.create("poet")
    console.send("slow please")
    console.see(".answer.is-live", text="word10")
    assert console.page.locator(".turn .chip.is-completed").count() == 0
    served.open("rest")
    console.see(".turn .chip.is-completed")
    assert console.see(".answer .prose").inner_text().split()[-1] == "word59"
    assert console.faults == []


def test_calls_are_lanes_in_time_with_a_barrier_across_them(
    chromium: Any, served: ServedProcess
) -> None:
    console = Console(chromium, served.url)
    console.create("planner")
    console.send("lanes")
    console.see(".waits")
    assert console.page.locator(".bar.is-running").count() == 2
    served.open("weather", "museums")
    barrier = console.see(".bar.is-barrier.is-running")
    assert "write_down, barrier, running" in barrier.get_attribute("aria-label")
    assert console.page.locator(".chip.is-queued").count() == 2
    heights = [bar.bounding_box()["height"] for bar in console.page.locator(".bar").all()]
    assert max(heights) == barrier.bounding_box()["height"] > 2.5 * min(heights)
    served.open("plan", "restaurants", "hotels")
    console.see(".turn .chip.is-completed")
    assert console.page.locator(".bar").count() == 6
    assert console.faults == []


def test_who_comes_later_sees_the_barrier_that_runs_and_all_bars_inside(
    chromium: Any, served: ServedProcess
) -> None:
    first = Console(chromium, served.url)
    first.create("planner")
    first.send("hello")
    first.see(".turn .chip.is-completed")
    first.send("lanes")
    served.open("weather", "museums")
    first.see(".bar.is-barrier.is-running")
    later = Console(chromium, served.url, width=390)
    later.see(".bar.is-barrier.is-running")
    served.open("plan", "restaurants", "hotels")
    later.see(".turn .chip.is-completed", nth=1)
    chart = later.page.locator(".rows").first.bounding_box()
    for bar in later.page.locator(".bar").all():
        box = bar.bounding_box()
        assert box["x"] + box["width"] <= chart["x"] + chart["width"] + 1
    assert first.faults == later.faults == []


def test_it_is_steered_in_the_middle_and_a_call_and_a_turn_are_cancelled(
    chromium: Any, served: ServedProcess
) -> None:
    console = Console(chromium, served.url)
    console.create("planner")
    served.open("weather", "museums", "plan", "restaurants")
    console.send("lanes")
    console.see(".bar.is-running", text="look_up")
    console.send("mind the rain")
    console.see(".chip.pending", text="mind the rain")
    console.page.locator(".bar", has_text="look_up").last.click()
    console.see(".call", text="hotels")
    console.press("Cancel call")
    console.see(".bar.is-error")
    console.see(".step .bubble", text="mind the rain")
    console.see(".turn .chip.is-completed")
    console.see("header .chip.is-idle")
    console.send("slow")
    console.see(".answer.is-live", text="word10")
    console.press("Cancel turn")
    console.see(".turn .chip.is-aborted", text="user")
    console.see(".answer .chip.is-aborted", text="interrupted")
    assert console.faults == []


def test_two_windows_see_a_question_one_answers_and_a_third_comes_later(
    chromium: Any, served: ServedProcess
) -> None:
    first = Console(chromium, served.url)
    first.create("planner")
    first.send("ask")
    first.see(".question", text="May it write the secret plan down?")
    second = Console(chromium, served.url, width=390, dark=True)
    second.see(".question")
    second.press("Allow")
    first.page.locator(".question").wait_for(state="detached")
    second.page.locator(".question").wait_for(state="detached")
    third = Console(chromium, served.url)
    third.see(".turn .chip.is-completed")
    third.page.locator(".bar").click()
    third.see(".call", text="Written: secret plan")
    third.see(".call", text="allowed")
    assert first.faults == second.faults == third.faults == []


def test_an_answer_that_holds_for_the_session_is_not_asked_for_again(
    chromium: Any, served: ServedProcess
) -> None:
    console = Console(chromium, served.url)
    console.create("planner")
    console.send("ask")
    console.see(".question", text="May it write the secret plan down?")
    console.page.get_by_label("for", exact=False).last.select_option("session")
    console.press("Allow")
    console.page.locator(".question").wait_for(state="detached")
    console.see(".turn .chip.is-completed")
    console.send("ask once more")
    console.page.locator(".turn .chip.is-completed").nth(1).wait_for()
    assert console.page.locator(".question").count() == 0
    console.page.locator(".bar").first.click()
    console.see(".call", text="allowed, with calls like it in this session")
    assert console.faults == []


def test_an_answer_that_is_taken_back_is_asked_for_again(
    chromium: Any, served: ServedProcess
) -> None:
    console = Console(chromium, served.url)
    console.create("planner")
    console.send("ask")
    console.see(".question")
    console.page.get_by_label("for", exact=False).last.select_option("session")
    console.press("Allow")
    console.see(".turn .chip.is-completed")
    console.page.locator(".bar").first.click()
    console.see(".call", text="allowed, with calls like it in this session")
    console.press("Ask again")
    console.page.get_by_role("button", name="Ask again").wait_for(state="detached")
    console.send("ask once more")
    console.see(".question", text="May it write the secret plan down?")
    console.press("Deny")
    console.page.locator(".turn .chip.is-completed").nth(1).wait_for()
    assert console.faults == []


def test_a_reload_in_the_middle_of_a_stream_misses_nothing(
    chromium: Any, served: ServedProcess
) -> None:
    console = Console(chromium, served.url)
    console.create("poet")
    console.send("slow")
    console.see(".answer.is-live", text="word10")
    console.page.reload()
    live = console.see(".answer.is-live", text="word10")
    assert live.inner_text().split() == ["Slowly:", *(f"word{number}" for number in range(11))]
    served.open("rest")
    console.see(".turn .chip.is-completed")
    words = console.see(".answer .prose").inner_text().split()
    assert words == ["Slowly:", *(f"word{number}" for number in range(60))]
    assert console.faults == []


def test_when_the_server_is_lost_and_comes_back_everything_is_there_once(
    chromium: Any, served: ServedProcess
) -> None:
    console = Console(chromium, served.url)
    console.create("poet")
    console.send("hello")
    console.see(".turn .chip.is-completed")
    before = console.turns()
    served.kill()
    console.see(".banner.is-lost")
    console.send("hello again")
    served.start()
    console.page.locator(".banner.is-lost").wait_for(state="detached")
    console.see(".turn .chip.is-completed", nth=1)
    assert console.turns()[0] == before[0]
    assert console.page.locator(".bubble.user", has_text="hello again").count() == 1
    assert console.page.locator(".turn").count() == 2
    assert console.faults == []


def test_a_wrong_token_is_asked_for_again(chromium: Any, served: ServedProcess) -> None:
    console = Console(chromium, served.url[:-1])
    console.see(".door", text="not valid")
    console.page.get_by_label("Token").fill("t" * 43)
    console.press("Connect")
    console.see(".agents")


@pytest.mark.parametrize("width", [390, 820, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_window_and_everything_has_a_name(
    chromium: Any, served: ServedProcess, width: int, dark: bool
) -> None:
    console = Console(chromium, served.url, width=width, dark=dark)
    if width < 700:
        console.press("Agents")
    console.create("poet")
    console.send("hello")
    console.see(".turn .chip.is-completed")
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert console.page.evaluate(overflow) <= 0
    nameless = """[...document.querySelectorAll('button, input, textarea')].filter(
        (one) => !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels.length)
    ).length"""
    assert console.page.evaluate(nameless) == 0
    assert console.faults == []
