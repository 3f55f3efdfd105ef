"""The paper, built for real with TeX: its numbers, its links, its bytes, and what must stop it."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import kit.commands.paper
from analysis.claiming.documents import citations, documents
from analysis.claiming.evaluation import evaluate_project
from analysis.claiming.evidence import load_evidence
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.published import load_published
from analysis.typeset.files import PaperFiles, paper_files
from analysis.typeset.generated import made_names
from analysis.typeset.words import escaped
from kit.home import Home
from kit.main import main
from kit.tex import PACKAGES, Built, build_pdf, failure, require_tex
from records.errors import (
    ClaimError,
    DiskFullError,
    ExportError,
    FormatError,
    PaperError,
    ToolMissingError,
)

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"


@dataclass(frozen=True)
class Project:
    """A copy of the paper's sources with everything generated beside them."""

    root: Path
    made: PaperFiles

    @property
    def main(self) -> Path:
        return self.root / "paper" / "main.tex"


def _copy(to: Path) -> Path:
    ignored = shutil.ignore_patterns("generated", "tables")
    shutil.copytree(ROOT / "paper", to / "paper", ignore=ignored)
    return to


def _write(root: Path, made: PaperFiles) -> None:
    for name, data in made.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = _copy(tmp_path_factory.mktemp("project"))
    made = paper_files(root, DATA, root / "cache")
    _write(root, made)
    return Project(root, made)


@pytest.fixture(scope="module")
def built(project: Project) -> Built:
    return build_pdf(project.main, project.root / "build", project.made.epoch)


@pytest.fixture(scope="module")
def text(built: Built) -> str:
    """What the PDF says, without line breaks."""
    done = subprocess.run(
        ["pdftotext", "-layout", str(built.pdf), "-"], capture_output=True, check=True, text=True
    )
    return " ".join(done.stdout.split())


def _objects(pdf: Path) -> bytes:
    """Everything in the file, compressed streams unpacked."""
    data = pdf.read_bytes()
    found = [data]
    for packed in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            found.append(zlib.decompress(packed))
        except zlib.error:
            continue  # an image or a font that is packed otherwise
    return b"\n".join(found)


def _spoiled(project: Project, tmp_path: Path, addition: str) -> Path:
    """The project again, with a line more in one section."""
    root = tmp_path / "spoiled"
    shutil.copytree(project.root / "paper", root / "paper")
    section = root / "paper" / "sections" / "limits.tex"
    section.write_text(section.read_text(encoding="utf-8") + addition + "\n", encoding="utf-8")
    return root / "paper" / "main.tex"


def test_the_paper_shows_the_values_that_the_records_give(text: str) -> None:
    values = evaluate_project(ROOT, DATA).values
    cited = {c.id for d in documents(ROOT) if d.kind == "tex" for c in citations(d)} & set(values)
    assert len(cited) > 40
    squeezed = text.replace(" ", "").replace("µ", "\u03bc")
    for id_ in cited:
        printed = values[id_].printed.replace(" ", "").replace("µ", "\u03bc")
        assert printed in squeezed, id_
        # The entry in the appendix, by the id that kit trace takes.
        assert f"kittrace{id_}" in squeezed, id_
    assert "What this does not establish" in text
    assert "Published against ours" in text


def test_every_number_is_a_link_to_its_entry(built: Built) -> None:
    objects = _objects(built.pdf)
    links = set(
        re.findall(
            rb"/S\s*/GoTo\s*/D\s*\(((?:claim|published|finding|run|verdict):[^)]*)\)", objects
        )
    )
    dests = subprocess.run(
        ["pdfinfo", "-dests", str(built.pdf)], capture_output=True, check=True, text=True
    ).stdout
    anchors = set(re.findall(r'"((?:claim|published|finding|run|verdict):[^"]*)"', dests))
    wanted = {
        f"{c.scheme}:{c.id}" for d in documents(ROOT) if d.kind == "tex" for c in citations(d)
    }
    reached = {link.decode() for link in links}
    assert wanted <= reached
    assert reached <= anchors
    assert any(link.startswith("run:") for link in reached)
    assert any(link.startswith("verdict:") for link in reached)


def test_the_provenance_names_digests_and_dates(project: Project) -> None:
    runs = project.made.files[Path("paper/generated/runs.tex")].decode()
    plain = runs.replace("\\allowbreak{}", "")
    for run in evaluate_project(ROOT, DATA).runs.values():
        assert run.started.plan_digest.hex in plain
        assert run.started.harness_digest.hex in plain
        assert run.host_id in plain
        assert run.engines[0].digest.hex in plain
    assert "2026-{}11-{}30" in runs


def test_the_same_bytes_again(
    project: Project, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    again = build_pdf(project.main, project.root / "elsewhere", project.made.epoch)
    assert again.pdf.read_bytes() == built.pdf.read_bytes()
    assert paper_files(project.root, DATA, project.root / "cache").files == project.made.files
    assert str(project.root).encode() not in _objects(built.pdf)


def test_it_is_fit_to_print(built: Built) -> None:
    assert max(built.overfull_pt, default=0) < 5
    fonts = subprocess.run(
        ["pdffonts", str(built.pdf)], capture_output=True, check=True, text=True
    ).stdout.splitlines()[2:]
    assert fonts
    for font in fonts:
        assert "Type 3" not in font
        assert re.search(r"\byes\b", font), f"not embedded: {font}"


def test_what_the_macros_print_is_what_the_audit_wants(project: Project) -> None:
    values, published = evaluate_project(ROOT, DATA).values, load_published(ROOT)
    assert project.made.files[CLAIMS_TEX] == claims_tex(values, published)


@pytest.mark.parametrize(
    ("addition", "said"),
    [
        (r"\claim{no.such.number}", "No claim `no.such.number'"),
        (r"\published{no.such.figure}", "No published `no.such.figure'"),
        (r"see Figure~\ref{fig:nowhere}", "fig:nowhere"),
        (r"as shown~\cite{nobody}", "nobody"),
        (r"\finding{F999}", "finding:F999"),
        (r"\nosuchmacro", r"\nosuchmacro"),
        (r"\begin{figure}\rule{1mm}{30cm}\end{figure}", "pt higher than its page"),
    ],
)
def test_what_leads_nowhere_stops_the_build(
    project: Project, tmp_path: Path, addition: str, said: str
) -> None:
    with pytest.raises(PaperError) as caught:
        build_pdf(_spoiled(project, tmp_path, addition), tmp_path / "build", project.made.epoch)
    assert said in caught.value.message
    assert str(tmp_path / "build") in caught.value.remedy


def test_without_the_generated_values_the_remedy_is_named(project: Project, tmp_path: Path) -> None:
    main_tex = _spoiled(project, tmp_path, "")
    shutil.rmtree(main_tex.parent / "generated")
    with pytest.raises(PaperError, match=r"generated/claims\.tex is missing"):
        build_pdf(main_tex, tmp_path / "build", 0)


def test_without_tex_the_packages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tex()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError) as caught:
        require_tex()
    assert "pdflatex" in caught.value.message
    assert caught.value.remedy.startswith("apt-get install")
    assert all(package in caught.value.remedy for package in PACKAGES)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A project of which the verb takes the paper's sources, and this one's records."""
    found = Home(_copy(tmp_path), tmp_path / "kit", DATA, tmp_path / "out")
    monkeypatch.setattr(kit.commands.paper, "home", lambda: found)
    return found


def test_the_verb_writes_the_pdf_and_removes_what_no_build_makes(
    here: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    generated = here.root / "paper" / "generated"
    old = generated / "figures" / "old-study" / "boots.pdf"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"of a study that is gone")
    (here.root / "mine").mkdir()
    (here.root / "mine" / "notes.tex").write_text("kept")
    (generated / "linked").symlink_to(here.root / "mine")
    assert main(["paper", "--json"]) == 0
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert told["pdf"] == str(here.out / "paper.pdf")
    assert (here.out / "paper.pdf").read_bytes().startswith(b"%PDF-")
    assert told["removed"] == [
        "paper/generated/figures/old-study/boots.pdf",
        "paper/generated/linked",
    ]
    for name in told["removed"]:
        assert f"removed: {name}" in shown.err
        assert not (here.root / name).exists()
    assert (here.root / "mine" / "notes.tex").read_text() == "kept"
    left = {path.relative_to(here.root) for path in generated.rglob("*") if path.is_file()}
    assert left == {Path(name) for name in told["files"]} == made_names(load_evidence(ROOT))


def test_generated_files_elsewhere_are_not_written_to(
    here: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.root / "mine").mkdir()
    (here.root / "mine" / "notes.tex").write_text("kept")
    (here.root / "paper" / "generated").symlink_to(here.root / "mine")
    assert main(["paper"]) == PaperError.exit_code
    assert "paper/generated is a link" in capsys.readouterr().err
    assert [path.name for path in (here.root / "mine").iterdir()] == ["notes.tex"]


def test_text_of_records_is_printed_and_never_obeyed(tmp_path: Path) -> None:
    said = r"\end{document} #1 $x$ %y {z} a_b ~^ <|> & it's ± 3 µs … naïve 100 % `q` -- --- \\"
    shutil.copy(ROOT / "paper" / "layout.sty", tmp_path)
    (tmp_path / "words.tex").write_text(
        "\\documentclass{article}\\usepackage{layout}\\begin{document}\\noindent\n"
        f"begin {escaped(said)} end\n\\end{{document}}\n",
        encoding="utf-8",
    )
    done = build_pdf(tmp_path / "words.tex", tmp_path / "build", 0)
    shown = subprocess.run(
        ["pdftotext", "-enc", "UTF-8", str(done.pdf), "-"], capture_output=True, check=True
    ).stdout.decode()
    flat = re.sub(r"\s", "", shown.partition("\f")[0])
    wanted = re.sub(r"\s", "", f"begin {said} end").replace("µ", "\u03bc").replace("…", "...")
    assert flat.replace("µ", "\u03bc").replace("…", "...").startswith(wanted)


def test_without_the_records_it_says_what_is_missing_and_writes_nothing(
    here: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = replace(here, data=here.root / "nothing")
    monkeypatch.setattr(kit.commands.paper, "home", lambda: empty)
    assert main(["paper"]) == ClaimError.exit_code
    told = capsys.readouterr().err
    assert told.count("study smoke-cpu") == 1
    assert "no sealed run" in told
    assert "restore records/data" in told
    assert not (here.root / "paper" / "generated").exists()


def test_what_is_in_the_place_of_the_pdf_is_named(
    here: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.out / "paper.pdf").mkdir(parents=True)
    assert main(["paper"]) == ExportError.exit_code
    assert f"{here.out / 'paper.pdf'} is a directory, not a file" in capsys.readouterr().err
    (here.out / "paper.pdf").rmdir()
    here.out.rmdir()
    here.out.write_text("a note")
    assert main(["paper"]) == ExportError.exit_code
    assert f"{here.out}: Not a directory" in capsys.readouterr().err
    assert not (here.root / "paper" / "generated").exists()


@pytest.mark.parametrize("name", ["a$HOME{b,c}:d", "50% #1~'\"&^ _"])
def test_a_project_may_stand_anywhere(project: Project, tmp_path: Path, name: str) -> None:
    """In TeX's search paths $ { } , : mean something, in TeX itself others do."""
    shutil.copytree(project.root / "paper", tmp_path / name / "paper")
    main_tex = tmp_path / name / "paper" / "main.tex"
    done = build_pdf(main_tex, tmp_path / name / "build", project.made.epoch)
    assert done.pdf.read_bytes().startswith(b"%PDF-")


def test_a_full_disk_is_not_taken_for_an_error_of_the_paper(
    project: Project, tmp_path: Path
) -> None:
    """Words of pdfTeX on a full file system; and a limit on the size of files, which kills it."""
    printed = (
        "(/usr/share/texmf/tex/latex/lm/t1lmtt.fd) [8\n"
        "!pdfTeX error: pdflatex: fflush() failed (No space left on device)\n"
        " ==> Fatal error occurred, no output PDF file produced!\n"
    )
    found = failure("pdflatex", 1, printed, "", tmp_path / "build" / "main.log")
    assert type(found) is DiskFullError
    assert str(tmp_path / "build") in found.message
    other = failure("pdflatex", 1, printed.replace("(No space left on device)", ""), "", tmp_path)
    assert other.message == "!pdfTeX error: pdflatex: fflush() failed "
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
        with pytest.raises(DiskFullError, match="no space left for pdflatex"):
            build_pdf(project.main, tmp_path / "build", project.made.epoch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("content", [b"\xff", b"---\nid: X\n---\n"])
def test_a_finding_that_is_none_is_named(
    here: Home, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (here.root / "paper" / "findings" / "F001.md").write_bytes(content)
    assert main(["paper"]) == FormatError.exit_code
    told = capsys.readouterr().err
    assert "error: paper/findings/F001.md: " in told
    assert "try: kit audit" in told
