"""The search of the site finds an operator however people write it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SEARCH = Path(__file__).parents[3] / "reports" / "templates" / "search.js"
NAMES = [
    "aten::mode",
    "aten::softmax",
    "aten::_softmax",
    "aten::cumsum",
    "aten::linalg_svd",
    "aten::add",
    "aten::module",
]
ASK = """
globalThis.window = { mpsmith: {} };
require(process.argv[1]);
const { read, rank, best } = window.mpsmith.search;
const [queries, names] = JSON.parse(process.argv[2]);
const answer = (text) => {
  const query = read(text);
  const rows = names.map((name) => ({ name, rank: rank(query, name, `${name} only mode supports it`) }));
  const found = best(rows).sort((a, b) => a.rank - b.rank).map(({ name }) => name);
  return { found, dtypes: query.dtypes, filters: query.filters };
};
console.log(JSON.stringify(queries.map(answer)));
"""


@pytest.fixture(scope="module")
def node() -> str:
    path = shutil.which("node")
    if path is None:
        pytest.skip("node is not installed")
    return path


def answers(node: str, *queries: str) -> list[dict[str, Any]]:
    command = [node, "-e", ASK, str(SEARCH), json.dumps([queries, NAMES])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    parsed: list[dict[str, Any]] = json.loads(done.stdout)
    return parsed


def test_methods_typos_and_dtypes_are_understood(node: str) -> None:
    queries = ("x.mode()", "sofmax", "cumsum int64", "torch.linalg.svd(a)", "bfloat16")
    method, typo, with_dtype, function, dtype = answers(node, *queries)
    assert method["found"][0] == "aten::mode"
    assert typo["found"][0] == "aten::softmax"
    assert (with_dtype["found"], with_dtype["dtypes"]) == (["aten::cumsum"], ["int64"])
    assert function["found"] == ["aten::linalg_svd"]
    assert dtype["dtypes"] == ["bfloat16"]


def test_filters_are_not_words_of_the_query(node: str) -> None:
    answer, name = answers(node, "status:dtype-gap dtype:bool since:2.14 mode", "aten::mode")
    assert answer["filters"] == {"status": ["dtype gap"], "dtype": ["bool"], "since": ["2.14"]}
    assert answer["dtypes"] == ["bool"]
    assert answer["found"][0] == "aten::mode"
    assert name["filters"] == {}


def test_a_word_in_a_reason_counts_only_where_no_name_fits(node: str) -> None:
    named, in_reasons = answers(node, "mode", "supports")
    assert "aten::add" not in named["found"]
    assert len(in_reasons["found"]) == len(NAMES)
