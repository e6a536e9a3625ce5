"""The page of a round: solved in a real browser, against the record and against CVXPY."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from fedpcd_cli.errors import UsageError
from fedpcd_cli.explain.run_facts import RunFacts
from fedpcd_cli.explain.what_if import Change, what_if
from fedpcd_cli.pcd.aggregator import FedPCD
from fedpcd_cli.qp.infeasible import proves_infeasible
from fedpcd_cli.qp.solve import solve
from fedpcd_cli.rounds.program import HalfspaceProgram
from fedpcd_cli.seeds import numpy_generator
from fedpcd_cli.testing.cohorts import aggregate_once, make_cohort, unit_rows
from fedpcd_cli.views.explain_page import asset, check_page_path, round_page, write_page

TAUS = (0.0, 0.02, 0.1, 0.3, 1.0)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium")
FACTS = RunFacts(path="x", recipe="worked", rule="fedpcd", params={}, seed=1, n_rounds=1, state="finished")


def dump(address, profile):
    """Return the document at an address as a browser leaves it after its scripts ran."""
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={profile}", "--dump-dom", address,
        ],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="session")
def browser_that_starts(tmp_path_factory):
    """Skip, with the reason, where the browser is there but can't run at all."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "probe.html").write_text("<p id=probe></p><script>probe.textContent = 6 * 7</script>")
    try:
        shown = dump((folder / "probe.html").as_uri(), folder / "profile")
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"chromium doesn't start here: {error}")
    if ">42<" not in shown:
        pytest.skip("chromium runs no scripts here")


@pytest.fixture
def browse(browser_that_starts, tmp_path):
    """`browse(page, "tau=0.1") -> str`: the document as a browser leaves it after its scripts ran."""

    def load(page, fragment=""):
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        return dump(f"{path.as_uri()}#{fragment}", tmp_path / "profile")

    return load


def rows_for(kind):
    rng = numpy_generator(5, "page", kind)
    return {
        "worked": lambda: unit_rows(10, 45, 155).numpy(),
        "unchanged": lambda: unit_rows(35, 60, 85).numpy(),
        "opposite": lambda: unit_rows(0, 180, 80).numpy(),
        "surrounded": lambda: np.vstack([unit_rows(90, 210, 330).numpy(), 0.5 * unit_rows(91).numpy()]),
        "many": lambda: rng.standard_normal((30, 60)) + 0.15,
        "conflicting": lambda: rng.standard_normal((40, 45)),
        "duplicated": lambda: np.repeat(rng.standard_normal((8, 10)) + 0.5, 3, axis=0),
        "low rank": lambda: rng.standard_normal((25, 4)) + np.array([1.5, 0, 0, 0]),
        "mixed lengths": lambda: (rng.standard_normal((12, 20)) + 0.2) * np.logspace(-3, 3, 12)[:, None],
    }[kind]()


KINDS = (
    "worked", "unchanged", "opposite", "surrounded", "many", "conflicting", "duplicated", "low rank", "mixed lengths",
)  # fmt: skip


def problems():
    """Yield (kind, tau, program): normalized and raw rows, with and without the primary direction."""
    for kind in KINDS:
        rows = rows_for(kind)
        reference = rows.mean(axis=0)
        rows = rows if kind == "mixed lengths" else rows / np.linalg.norm(rows, axis=1, keepdims=True)
        reference = reference / np.linalg.norm(reference)
        for tau in TAUS:
            for primary in (True, False):
                gram = rows @ rows.T
                yield kind, tau, HalfspaceProgram(
                    gram=gram, reference_products=rows @ reference, thresholds=tau * np.diag(gram), primary=primary
                )  # fmt: skip


@in_a_browser
def test_the_solver_of_the_page_against_daqp_and_cvxpy(browse):
    posed = list(problems())
    given = [{"gram": p.gram.tolist(), "linear": p.linear.tolist(), "tau": tau} for _, tau, p in posed]
    page = (
        f"<!doctype html><meta charset=utf-8><pre id=out></pre><script>{asset('solver.js')}</script><script>"
        f"const given = {json.dumps(given)};"
        "document.getElementById('out').textContent ="
        " JSON.stringify(given.map((g) => FedPCD.multipliers(g.gram, g.linear, g.tau)));</script>"
    )
    answers = json.loads(html.unescape(re.search(r"<pre id=\"out\">(.*?)</pre>", browse(page), re.S)[1]))
    n_bent = n_infeasible = 0
    for index, ((kind, tau, program), answer) in enumerate(zip(posed, answers, strict=True)):
        where = f"{kind}, tau {tau}, primary {program.primary}"
        expected = solve(program)
        if not expected.feasible:
            n_infeasible += 1
            assert answer["farkas"] is not None, where
            assert proves_infeasible(program, np.array(answer["farkas"])), where
            continue
        assert answer["farkas"] is None, where
        found = np.array(answer["mu"])
        assert (found >= 0).all(), where
        size = max(1.0, float(np.sqrt(expected.multipliers @ program.gram @ expected.multipliers)))
        moved = found - expected.multipliers
        assert np.sqrt(max(0.0, moved @ program.gram @ moved)) <= 1e-9 * size + 2e-8 * (kind == "duplicated"), (
            where
        )
        n_bent += expected.active.any()
        if index % 7 == 0:  # CVXPY takes its time
            moved = found - solve(program, "cvxpy").multipliers
            assert np.sqrt(max(0.0, moved @ program.gram @ moved)) <= 1e-6 * size, where
    assert n_bent >= 40
    assert n_infeasible >= 16


@in_a_browser
def test_the_page_shows_the_recorded_multipliers_and_can_be_clicked_through(browse):
    rows = rows_for("conflicting")
    certificate = aggregate_once(FedPCD(tau=0.05), make_cohort(rows)).certificate
    clicks = """<script>
    const log = [];
    const texts = (n) => [...document.querySelectorAll(`#rows tr > :nth-child(${n})`)].map((cell) => cell.textContent);
    const multipliers = () => Object.fromEntries([...document.querySelectorAll("#rows tr")]
      .map((row) => [row.dataset.client, +row.dataset.multiplier]));
    const move = (tau) => { const slider = document.getElementById("tau"); slider.value = tau;
      slider.dispatchEvent(new Event("input")); };
    log.push(multipliers());
    move(0.2); log.push(multipliers(), document.getElementById("facts").dataset.angle);
    const button = document.querySelector("th[data-key=client] button");
    button.click(); log.push(texts(2)); button.click(); log.push(texts(2), button.parentNode.getAttribute("aria-sort"));
    const box = document.querySelector("[data-layer=clients]");
    box.click(); log.push(getComputedStyle(document.getElementById("layer-clients")).display);
    box.click(); log.push(getComputedStyle(document.getElementById("layer-clients")).display);
    document.getElementById("reset").click(); log.push(multipliers(), document.getElementById("tau-number").value);
    const reachable = [...document.querySelectorAll("button, input, [tabindex]")].filter((e) => e.tabIndex === 0).length;
    log.push(reachable);
    document.body.insertAdjacentHTML("beforeend", "<pre id=log></pre>");
    document.getElementById("log").textContent = JSON.stringify(log);
    </script></body>"""
    dom = browse(round_page(certificate, FACTS).replace("</body>", clicks))
    log = json.loads(html.unescape(re.search(r'<pre id="log">(.*?)</pre>', dom, re.S)[1]))
    first, moved, angle, ascending, descending, aria, hidden, shown, reset, tau, reachable = log
    recorded = certificate.multipliers
    assert [first[str(client)] for client in range(40)] == pytest.approx(recorded, abs=1e-9)
    expected = what_if(certificate, Change(tau=0.2))
    assert [moved[str(client)] for client in range(40)] == pytest.approx(expected.multipliers, abs=1e-8)
    assert float(angle) == pytest.approx(expected.angle_degrees, abs=1e-6)
    assert ascending == [str(client) for client in range(40)]
    assert (descending, aria) == (ascending[::-1], "descending")
    assert (hidden, shown) == ("none", "inline")
    assert (reset, tau) == (first, "0.05")
    assert reachable == 1 + 1 + 1 + 5 + 1 + 11  # slider, number, reset, layers, table, headings


@in_a_browser
def test_what_the_page_says_of_contradicting_clients(browse):
    certificate = aggregate_once(FedPCD(tau=0.1), make_cohort(unit_rows(0, 180, 80))).certificate
    dom = browse(round_page(certificate, FACTS), "tau=0.4")
    assert (
        "infeasible for every τ &gt; 0: clients 0, 1 contradict each other; the round follows FedAvg"
        in html.escape(html.unescape(dom), quote=False)
    )
    assert dom.count('data-multiplier="0"') == 3
    assert 'id="tau-number"' in dom


@pytest.fixture
def page():
    certificate = aggregate_once(FedPCD(tau=0.25), make_cohort(unit_rows(10, 45, 155))).certificate
    return lambda **changes: round_page(certificate, RunFacts(**{**FACTS.__dict__, **changes}))


def test_nothing_is_loaded_from_anywhere(page):
    text = page().replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?://|//[a-z]+\.|<link|<img|@import|src=|fetch\(|XMLHttp", text)
    assert "default-src 'none'" in text
    assert "/*" not in re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def test_the_data_is_exact_and_can_not_break_out(page):
    text = page(recipe="a</script><script>alert(1)</script>")
    assert text.count("</script>") == 3
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])
    assert data["recipe"] == "a</script><script>alert(1)</script>"
    assert data["gram"][0][1] == pytest.approx(np.cos(np.deg2rad(35)))
    assert data["tau"] == 0.25


def test_page_paths_are_checked(tmp_path, page):
    with pytest.raises(UsageError) as caught:
        check_page_path(tmp_path / "x.pdf")
    assert str(caught.value) == f"--html must end in .html or .htm; found '{tmp_path / 'x.pdf'}'."
    (tmp_path / "d.html").mkdir()
    with pytest.raises(UsageError, match=r"--html must be a file; '.*d\.html' is a folder\."):
        check_page_path(tmp_path / "d.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--html .*a\.html can't be written: "):
        write_page(page(), tmp_path / "file" / "a.html")
    write_page(page(), tmp_path / "deep" / "a.html")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.html"]
