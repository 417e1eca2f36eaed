"""The site from the disk: every page in a headless Chromium with the network off.

It is made of what the notebooks' tests left; of those that nobody ran here, three quick ones run now, and the
others come without outputs.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from clutils.course import exercise
from clutils.course.book import questions, running, site, slides

QUICK = {"00_start_here", "01_from_siamese_nets_to_infonce", "05_hard_negatives"}
MEGABYTES = 25
KNOWN = {e.name: e for every in exercise.catalogue().values() for e in every}
PAGES = ("*.html", "notebooks/*.html", "api/*.html", "data/*.html", "docs/*.html", "slides/index.html")
SOME = re.compile(r"index|losses|(00|01|13)_\w+")  # of the pages and decks: all are opened in the sweep
ALL = pytest.param("all", marks=pytest.mark.sweep)
RENDERED = """async () => {
    if (!window.MathJax) return [0, 0, 0];
    await MathJax.startup.promise;
    const all = (query) => document.querySelectorAll(query).length;
    return [all('.math'), all('mjx-container'), all('[data-mjx-error], mjx-merror')];
}"""


SMALLEST, SHRUNK = 14, 0.64  # px of any type; a figure against its own size, where its ticks have 9 px
UNSEEN = """async ([smallest, shrunk]) => { // what a hall would not see: too tall, too wide, too small
    const found = {}, shown = (part) => part.checkVisibility({ visibilityProperty: true });
    for (let k = 0; k < Reveal.getTotalSlides(); k++) {
        Reveal.slide(k);
        const slide = Reveal.getCurrentSlide(), scale = Reveal.getScale(), wrong = [];
        const frame = slide.querySelector('iframe');
        const images = [...slide.querySelectorAll('img')];
        await Promise.all(images.map((image) => { image.loading = 'eager'; return image.decode(); }));
        if (frame || images.length) await new Promise((go) => setTimeout(go, frame ? 4000 : 30));
        await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))); // moved
        if (frame?.dataset.controls) { // two controls, type of 18 px
            const inside = frame.contentDocument, zoom = scale * frame.style.zoom;
            const texts = [...inside.querySelectorAll('svg text')].filter((text) => text.checkVisibility());
            const least = Math.min(...texts.map((text) => {
                const { a, b } = text.getScreenCTM();
                return zoom * parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b); }));
            if (least < 18) wrong.push(`type of ${least} px`);
            if (inside.querySelectorAll('.row').length > 2) wrong.push('more than two controls');
        }
        for (const part of slide.querySelectorAll('mjx-container[display="true"], table'))
            if (part.scrollWidth > Math.min(part.clientWidth + 1, slide.clientWidth)) wrong.push('wide');
        if (slide.scrollHeight > 721) wrong.push(`${slide.scrollHeight} tall`);
        const texts = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
        for (const parts = new Set(slide.querySelectorAll('mjx-container')); ;) {
            const text = texts.nextNode();
            if (text && text.textContent.trim()) parts.add(text.parentElement);
            if (text) continue;
            for (const part of parts) {
                const size = scale * parseFloat(getComputedStyle(part).fontSize);
                if (size < smallest && !part.closest('aside, style, mjx-assistive-mml') && shown(part))
                    wrong.push(`${size.toFixed(1)} px: ${part.textContent.slice(0, 40)}`);
            }
            break;
        }
        for (const image of images) {
            const own = parseFloat(image.style.getPropertyValue('--wide'));
            const by = image.getBoundingClientRect().width / own;
            if (shown(image) && by < shrunk) wrong.push(`a figure at ${by.toFixed(2)}`);
        }
        if (frame && (images.some(shown) || frame.style.zoom < 0.75)) wrong.push(`zoom ${frame.style.zoom}`);
        if (wrong.length) found[`${k + 1} ${slide.dataset.cell}`] = wrong;
    }
    return found; }"""


@pytest.fixture(scope="module")
def built(outputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx_book_theme")
    patch = pytest.MonkeyPatch()
    patch.setenv("CLUTILS_FAST", "1")
    running.executed({name for name in QUICK if not (outputs / f"{name}.ipynb").exists()}, outputs)
    patch.undo()
    folder = tmp_path_factory.mktemp("site")
    said = site.whole(folder, outputs, "https://example.org/course/", repository="owner/name")
    assert said == [], "Sphinx has complaints"
    return folder


@pytest.fixture(scope="module")
def page(chromium) -> Iterator:
    """A page of a telephone's width with no network; `.faults` collects what goes wrong in it."""
    context = chromium.new_context(viewport={"width": 360, "height": 780}, offline=True)
    opened = context.new_page()
    opened.set_default_timeout(120_000)
    opened.faults = []
    aborted = "net::ERR_ABORTED"  # by the page itself, when it goes on before an image is there

    def failed(request) -> None:
        if request.failure != aborted:
            opened.faults.append(f"not loaded: {request.url}: {request.failure}")

    opened.on("requestfailed", failed)
    opened.on("pageerror", lambda error: opened.faults.append(f"error: {error}"))
    opened.on("console", lambda said: said.type == "error" and opened.faults.append(f"console: {said.text}"))
    yield opened
    context.close()


def test_no_link_is_dead(built: Path):
    pages = {path: path.read_text("utf-8") for path in built.rglob("*.html")}
    anchors = {path: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for path, text in pages.items()}
    dead = set()
    for path, text in pages.items():
        for target in re.findall(
            r'<\w[^>]*?\s(?:href|src)="([^"]+)"', re.sub(r"(?s)<script.*?</script>", "", text)
        ):
            if re.match(r"[a-z]+:|//", target):
                continue
            name, _, anchor = unquote(target.split("?")[0]).partition("#")
            aim = (path.parent / name).resolve() if name else path
            aim = aim / "index.html" if aim.is_dir() else aim
            if not aim.exists() or (anchor and aim in anchors and anchor not in anchors[aim]):
                dead.add(f"{path.relative_to(built)} -> {target}")
    assert len(pages) > 200 and not dead


ANSWER = """(form, answers) => answers.map((answer) => {
    const fields = [...form.querySelectorAll('select, input')];
    fields.forEach((field, k) => { field.value = answer[k]; });
    if (!fields.every((field, k) => field.value === answer[k])) return 'it does not offer ' + answer;
    form.querySelector('button').click();
    return form.querySelector('output').textContent;
})"""


def fields(answer: object) -> list[str]:
    """An answer as a reader gives it: a word for each menu, or a number."""
    if isinstance(answer, tuple | list):
        return list(answer)
    return [answer if isinstance(answer, str) else f"{answer:.12g}"]


def answered(page) -> set[str]:
    """The exercises that the page asks: each says of every answer what `check` says, and has its hint."""
    asked = set()
    for form in page.query_selector_all("form.question"):
        cell = form.evaluate("(form) => form.closest('.cell').querySelector('pre').textContent")
        name = re.search(r"lesson\.(\w+)\.check", cell)[1]
        own = KNOWN[name] if questions.choices(KNOWN[name]) else questions.by_hand(KNOWN[name])[0]
        answers = [own.answer, *(wrong.answer for wrong in own.wrong)]
        said = form.evaluate(ANSWER, [fields(answer) for answer in answers])
        expected = [own.check(answer).message.replace("`", "") for answer in answers]
        assert said == expected and said[0].startswith(f"✓ {name}") and "✓" not in "".join(said[1:])
        if not questions.choices(own):
            (other,) = form.evaluate(ANSWER, [["123456.5"]])
            assert other == f"✗ {name}: not yet; 123456.5 is not it. A hint helps."
        form.query_selector("button[type=button]").click()
        hint = form.query_selector("output").inner_text()
        assert hint == f"Hint 1 of {len(own.hints)}: {own.hints[0]}".replace("`", "")
        asked.add(name)
    return asked


@pytest.mark.parametrize("pages", ["some", ALL])
def test_every_page_opens_from_the_disk_on_a_telephone_and_its_questions_say_what_check_says(
    built, page, pages
):
    found, formulas, asked = {}, 0, set()
    paths = sorted(path for pattern in PAGES for path in built.glob(pattern))
    for path in paths if pages == "all" else [path for path in paths if SOME.fullmatch(path.stem)]:
        page.faults.clear()
        page.goto(path.as_uri())
        marked, rendered, wrong = page.evaluate(RENDERED)
        width = page.evaluate("document.documentElement.scrollWidth")
        if rendered < marked or wrong:
            page.faults.append(f"{marked} formulas, {rendered} rendered, {wrong} wrong")
        if width > 360:
            page.faults.append(f"{width} pixels wide")
        if nameless := page.evaluate("[...document.images].filter((image) => !image.alt).length"):
            page.faults.append(f"{nameless} images without alt text")
        asked |= answered(page)
        found |= {path.name: list(page.faults)} if page.faults else {}
        formulas += rendered
    assert not found and formulas > (1000 if pages == "all" else 200)
    every = {name for name, e in KNOWN.items() if questions.form(e)}
    assert asked == every if pages == "all" else len(asked & every) > 3


UNTOLD = """() => [...document.querySelectorAll(
    '.bd-article :is(figure, table, .cell_input pre, .columns, mjx-container[display])')].filter(
    (box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 4
        && !box.matches('.goes-on')).length"""


def test_on_a_telephone_what_goes_on_says_so_columns_stay_and_the_menu_closes(built: Path, page):
    (path,) = (built / "notebooks").glob("01_*.html")
    page.goto(path.as_uri())
    page.wait_for_selector(".goes-on", state="attached")
    page.wait_for_function(f"({UNTOLD})() === 0")
    assert page.locator("mjx-container[data-fitted]").count() > 5
    figure = page.locator("figure.goes-on").first
    assert figure.evaluate("(box) => box.previousElementSibling.textContent") == "swipe for the rest →"
    figure.evaluate("(box) => box.scrollTo(box.scrollWidth, 0)")
    moved = "(box) => box.scrollLeft > 0 && !box.matches('.goes-on')"
    page.wait_for_function(f"() => [...document.querySelectorAll('figure')].some({moved})")
    block = page.locator(".columns", has_text=re.compile(r"triplet +all"))  # in an answer, closed at first
    assert not block.is_visible()
    block.evaluate("(block) => block.closest('details').querySelector('summary').click()")
    columns = block.inner_text().splitlines()
    assert len(columns) == 3 and len({line.index("the seven") for line in columns}) == 1
    printed = page.locator(".cell_output pre").all_inner_texts()
    claim = page.locator(".claim").first  # a card, its evidence folded
    assert claim.locator("details").get_attribute("open") is None and "evidence" in claim.inner_text()
    assert any(re.search(r"^.{70,}\n {4,}\S", text, re.M) for text in printed), "what is indented stays so"
    page.locator("button.secondary-toggle").first.click()
    page.locator("dialog[open] a[href^='#']").nth(1).click()
    page.wait_for_selector("dialog[open]", state="detached")
    assert page.faults == []


def test_a_panel_is_never_an_empty_box(built: Path):
    explorers = 0
    for path in (built / "notebooks").glob("*.html"):
        text = path.read_text("utf-8")
        for panel in text.split('<div class="live-panel">')[1:]:
            assert "A live panel" in panel[:300]
        explorers += text.count('<iframe class="explorer"')
        assert "widget-view" not in text
    assert explorers >= 3


def test_what_a_cell_calls_leads_to_its_docs_and_they_to_its_source(built: Path):
    text = (built / "notebooks" / "01_from_siamese_nets_to_infonce.html").read_text("utf-8")
    assert 'href="../api/losses.html#clutils.losses.pair.PairMargin"' in text
    docs = (built / "api" / "losses.html").read_text("utf-8")
    assert 'href="../_modules/clutils/losses/pair.html#PairMargin"' in docs
    assert "class PairMargin" in re.sub(
        "<[^>]+>", "", (built / "_modules/clutils/losses/pair.html").read_text()
    )


def test_a_chapter_loads_at_most_3_5_megabytes_at_first(built: Path):
    sizes = {}
    for path in running.sources():
        chapter = built / "notebooks" / f"{path.stem}.html"
        named = re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"?]+)', chapter.read_text("utf-8"))
        files = {(chapter.parent / name).resolve() for name in named if re.search(r"\.(js|css)$", name)}
        font = next(built.rglob("fa-solid-900.woff2"))  # of the icons
        sizes[path.stem] = sum(file.stat().st_size for file in (chapter, font, *files) if file.exists()) / 1e6
    assert 2.5 < max(sizes.values()) < 3.5, sizes  # MathJax alone is 2.1


def test_search_finds_a_word_with_no_network(built: Path, page):
    page.faults.clear()
    page.goto((built / "search.html").as_uri() + "?q=temperature")
    page.locator("#search-results li a").nth(5).wait_for(state="attached")  # they come one after another
    assert not page.faults


def test_a_question_is_answered_by_keyboard_alone(built: Path, page):
    page.goto((built / "notebooks" / "01_from_siamese_nets_to_infonce.html").as_uri())
    form = page.locator("form.question").first
    form.locator("input").focus()
    page.keyboard.type("9")
    page.keyboard.press("Enter")
    assert form.locator("output").inner_text() == "✓ negatives_of_an_anchor: right."
    page.keyboard.type("x")
    page.keyboard.press("Enter")
    assert "expected a number, got 9x" in form.locator("output").inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert form.locator("output").inner_text().startswith("Hint 1 of")


def test_both_themes_are_there(built: Path, page):
    page.goto((built / "index.html").as_uri())
    shades = {}
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        shades[theme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shades["light"] != shades["dark"]
    page.goto((built / "notebooks" / "00_start_here.html").as_uri())
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    for inside in (
        "figure",
        "iframe",
        "form.question",
    ):  # the theme lays a light grey under what is HTML
        shown = page.locator(f".output.text_html:has({inside})").first
        assert shown.evaluate("(output) => getComputedStyle(output).backgroundColor") == "rgba(0, 0, 0, 0)"


def test_it_fits_into_a_zip_and_says_its_address(built: Path, tmp_path: Path):
    zipped = shutil.make_archive(str(tmp_path / "site"), "zip", built)
    assert Path(zipped).stat().st_size < MEGABYTES * 2**20
    for path in running.sources():
        page = (built / "notebooks" / f"{path.stem}.html").read_text("utf-8")
        assert f"https://example.org/course/notebooks/{path.stem}.html" in page
        assert f"https://colab.research.google.com/github/owner/name/blob/colab/{path.name}" in page
        assert "git+https://github.com/owner/name" in (built / "notebooks" / path.name).read_text("utf-8")


@pytest.mark.parametrize("decks", ["some", ALL])
def test_a_deck_opens_and_each_slide_is_seen_whole_in_type_that_can_be_read(built: Path, page, decks):
    page.set_viewport_size({"width": 1280, "height": 720})
    wrong = {}
    paths = sorted((built / "slides").glob("[01]*[!0].html"))  # those of 20 minutes have slides of these
    for path in paths if decks == "all" else [path for path in paths if SOME.fullmatch(path.stem)]:
        page.faults.clear()
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready=yes]")
        unseen = page.evaluate(UNSEEN, [SMALLEST, SHRUNK])
        if page.faults or unseen or page.locator("[data-mjx-error], mjx-merror").count():
            wrong[path.stem] = [*page.faults, unseen]
        assert page.locator("mjx-container").count() > 5
    assert not wrong
    page.set_viewport_size({"width": 360, "height": 780})


def test_a_clicker_turns_slides_after_a_click_into_an_explorer(built: Path, page):
    page.set_viewport_size({"width": 1280, "height": 720})
    decks = (
        path for path in sorted((built / "slides").glob("*.html")) if "<iframe" in path.read_text("utf-8")
    )
    page.goto(next(decks).as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    with_explorer = (
        "[...document.querySelectorAll('.slides > section')].findIndex((s) => s.querySelector('iframe'))"
    )
    at = page.evaluate(f"(Reveal.slide({with_explorer}), Reveal.getIndices().h)")
    slider = page.frame_locator("section.present iframe").locator("input[type=range]").first
    slider.focus()
    page.keyboard.press("PageDown")
    page.wait_for_function(f"Reveal.getIndices().h === {at + 1}")
    page.set_viewport_size({"width": 360, "height": 780})


def test_the_speakers_view_works_from_the_disk(built: Path, page):
    page.goto((built / "slides" / "00_start_here.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    speaker = opened.value
    speaker.wait_for_function(
        "() => document.querySelector('.speaker-controls-notes .value')?.innerText.length > 50"
    )
    assert "believe wrongly" in speaker.locator(".speaker-controls-notes .value").inner_text()
    page.evaluate("Reveal.next()")
    speaker.wait_for_function("() => document.querySelector('iframe') !== null")
    speaker.close()


@pytest.mark.parametrize("file", ["searchindex.js", "explorers/index.html"])  # of an own site; of notebooks/
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path, file: str):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("somebody's")
    with pytest.raises(FileExistsError, match="is not empty and no book"):
        site.replace(tmp_path)
    with pytest.raises(FileExistsError, match="is not empty and has no slides"):
        slides.write(tmp_path, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [Path(file).parts[0]]
    assert (tmp_path / file).read_text() == "somebody's"


def test_a_base_url_that_is_no_address_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="base_url is 'my site'"):
        site.whole(tmp_path / "site", tmp_path, "my site")
