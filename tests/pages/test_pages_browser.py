"""Pages in headless Chromium: keys, buttons, what is read out, no network, and contrast in each light."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser

import rote

pytestmark = pytest.mark.browser

PLAN = rote.compile("block[(0),(1),()]+(2) -> block[(),(0),(1)]+(2)", shape=(8, 9, 10), grid=(2, 2, 2), dtype="c16")
BACK = rote.Plan(PLAN.source, PLAN.target, PLAN.dtype, PLAN.steps * 3)  # so that there is a way to go
LAST = len(BACK.steps)

SHOWN = "[...document.querySelectorAll('.scene')].flatMap((scene, k) => scene.checkVisibility() ? [k] : [])"
STATUS = "document.getElementById('status').textContent"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as each:
        yield each


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "plan.html"
    file.write_text(BACK.to_html(), "utf-8")
    return file


@pytest.fixture
def page(browser: Browser, path: Path) -> Iterator[Browser]:
    """A browser with the page of a plan, which asks for nothing else and complains of nothing."""
    browser.screen()
    browser.open(path)
    yield browser
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []


def test_keys_step_through_a_plan(page: Browser) -> None:
    """One scene is seen at a time; arrows go to the next and the last one, Home and End to the ends, never beyond."""
    assert page.ask(SHOWN) == [0]
    for key, number in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", LAST), ("ArrowRight", LAST)]:
        page.press(key)
        assert page.ask(SHOWN) == [number]
        assert page.ask("location.hash") == f"#scene-{number}"
        assert page.ask("[...document.querySelectorAll('[aria-current=step]')].map(a => a.hash)") == [
            f"#scene-{number}"
        ]
    page.press("Home", "ArrowLeft")
    assert page.ask(SHOWN) == [0]


def test_keys_of_a_choice_are_its_own(page: Browser) -> None:
    """Arrows in a list of ranks choose a rank, and leave the step."""
    page.ask("document.getElementById('follow').focus()")
    page.press("ArrowRight")
    assert page.ask(SHOWN) == [0]


def test_buttons_and_links_step_too(page: Browser) -> None:
    """And a button that leads nowhere is off."""
    off = "['first', 'previous', 'next', 'last'].filter(name => document.getElementById(name).disabled)"
    assert page.ask(off) == ["first", "previous"]
    for selector, number in [("#next", 1), ("#last", LAST), ("#previous", LAST - 1), ("nav li:nth-child(3) a", 2)]:
        page.click(selector)
        assert page.ask(SHOWN) == [number]
    page.click("#last")
    assert page.ask(off) == ["next", "last"]
    page.click("#first")
    assert page.ask(SHOWN) == [0]


def test_the_address_leads_to_a_step(browser: Browser, path: Path) -> None:
    """A page that is opened at a scene shows that; at one that is not there, the nearest."""
    for fragment, number in [("#scene-2", 2), ("#scene-99", LAST), ("#elsewhere", 0)]:
        browser.open(path, fragment)
        assert browser.ask(SHOWN) == [number]


def test_a_screen_reader_is_told_each_step(page: Browser) -> None:
    """The live region says the heading and the sentence of the scene; controls, tables and scenes have names."""
    assert page.ask(STATUS).startswith("Start. The tensor lies in ")
    page.press("ArrowRight")
    step = BACK.steps[0]
    said = page.ask(STATUS)
    assert said.startswith(f"Step 1 of {LAST}: {step.kind}. {step.kind} over grid modes 0, 1 ")
    assert f"{step.before.layout} becomes {step.after.layout}. A rank receives at most" in said
    tree = page.do("Accessibility.getFullAXTree")["nodes"]
    names = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
    wanted = {"button", "link", "combobox", "navigation", "table", "region"}
    assert {role for role, name in names if role in wanted and name} == wanted
    assert [role for role, name in names if role in wanted and not name] == []
    live = [node for node in tree if node["role"].get("value") == "status"]
    assert len(live) == 1 and {"name": "live", "value": {"type": "token", "value": "polite"}} in live[0]["properties"]


def test_all_is_reached_by_the_keyboard(page: Browser) -> None:
    """Tab goes through every control that is seen, and shows where it is."""
    wanted = page.ask(
        "[...document.querySelectorAll('button:enabled, a, select, summary, [tabindex=\"0\"]')]"
        ".filter(each => each.checkVisibility()).length"
    )
    focused = []
    for _ in range(wanted):
        page.press("Tab")
        focused.append(
            page.ask(
                "(each => [each.outerHTML.slice(0, 90), getComputedStyle(each).outlineStyle])(document.activeElement)"
            )
        )
    assert [text for text, style in focused if style != "solid"] == []
    assert len({text for text, _ in focused}) > wanted / 2


def test_a_rank_is_followed(page: Browser) -> None:
    """The cells and rows of the rank that is chosen are marked, and its block is said."""
    page.press("End")
    page.ask("follow.value = '5'; follow.dispatchEvent(new Event('change'))")
    marked = "[...document.querySelectorAll('.map td.mine')].every(cell => cell.dataset.ranks.split(' ').includes('5'))"
    assert page.ask("document.querySelectorAll('.map td.mine').length") > 0 and page.ask(marked)
    unmarked = "[...document.querySelectorAll('.map td[data-ranks]:not(.mine)')]"
    assert page.ask(f"{unmarked}.every(cell => !cell.dataset.ranks.split(' ').includes('5'))")
    assert page.ask(STATUS).endswith(f"Rank 5 holds {BACK.target.local_shape(5)}.")
    page.ask("follow.value = ''; follow.dispatchEvent(new Event('change'))")
    assert page.ask("document.querySelectorAll('.mine').length") == 0


def test_modes_are_chosen(page: Browser) -> None:
    """Of several pairs of modes one is drawn, the same in all scenes."""
    page.press("End")
    pairs = page.ask(f"[...document.querySelector('#scene-{LAST} select').options].map(option => option.text)")
    assert len(pairs) == math.comb(3, 2)
    for pair in pairs[::-1]:
        page.ask(
            f"(() => {{ const each = document.querySelector('#scene-{LAST} select');"
            f"each.value = [...each.options].findIndex(o => o.text === {pair!r});"
            "each.dispatchEvent(new Event('change')); })()"
        )
        for scene in (LAST, 1):
            planes = f"[...document.querySelectorAll('#scene-{scene} .plane')].filter(each => !each.hidden)"
            assert page.ask(f"{planes}.map(each => each.querySelector('h4').textContent)") == [pair]


def test_the_policy_holds(browser: Browser, path: Path) -> None:
    """Not even a script of its own could fetch something, or bring in another script."""
    browser.open(path)
    assert browser.ask("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')") == "refused"
    browser.ask("document.body.append(Object.assign(document.createElement('script'), {text: 'window.foreign = 1'}))")
    assert browser.ask("window.foreign") is None
    assert browser.requests == [path.as_uri()] or all("127.0.0.1" not in address for address in browser.requests)


CONTRAST = """(() => {
  const parts = text => (text.match(/[0-9.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const below = node => {
    for (let each = node; each; each = each.parentElement) {
      const color = parts(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll('body *')) {
    const says = [...node.childNodes].some(each => each.nodeType === 3 && each.textContent.trim());
    if (!says || !node.checkVisibility() || node.closest(':disabled, .spoken, script')) continue;
    const [a, b] = [light(parts(getComputedStyle(node).color)), light(below(node))].sort((x, y) => x - y);
    if ((b + 0.05) / (a + 0.05) < 4.5) poor.push(node.outerHTML.slice(0, 80));
  }
  return poor;
})()"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 360])
def test_it_can_be_read_in_every_light_and_width(page: Browser, dark: bool, width: int) -> None:
    """All texts have a contrast of 4.5 or more (WCAG 2.2, 1.4.3), and a narrow window need not be moved sideways."""
    page.screen(width, 800, dark=dark)
    for key, rank in (("Home", ""), ("End", ""), ("End", "3")):
        page.press(key)
        page.ask(f"follow.value = '{rank}'; follow.dispatchEvent(new Event('change'))")
        assert page.ask(CONTRAST) == []
        assert page.ask("document.documentElement.scrollWidth <= innerWidth")
    assert page.ask("getComputedStyle(document.body).backgroundColor") == (
        "rgb(21, 23, 27)" if dark else "rgb(255, 255, 255)"
    )


def test_all_scenes_are_printed(page: Browser) -> None:
    """On paper every scene and every plane is there, dark on light, without buttons."""
    page.screen(media="print", dark=True)
    assert page.ask(SHOWN) == [*range(LAST + 1)]
    assert page.ask("[...document.querySelectorAll('.plane, .plane h4')].every(each => each.checkVisibility())")
    assert not page.ask("document.querySelector('nav').checkVisibility()")
    assert page.ask(CONTRAST) == []


def test_all_is_there_without_scripts(browser: Browser, path: Path) -> None:
    """Where scripts are off all scenes and planes are seen, one below the other, and no button that does nothing."""
    browser.do("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(path)
        shown: Any = browser.ask(SHOWN)
        assert shown == [*range(LAST + 1)]
        assert browser.ask("[...document.querySelectorAll('.plane')].every(each => each.checkVisibility())")
        assert not browser.ask("document.querySelector('button').checkVisibility()")
    finally:
        browser.do("Emulation.setScriptExecutionDisabled", value=False)
