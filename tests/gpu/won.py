"""Turns measured products into the rows of backend/plan/mmq_won.inc."""

from __future__ import annotations

LEAST_RATIO = 1.0  # of stock's speed; above the 0.98 that dispatch promises, to be safe from one run's noise
HEADER = """// MMQ_WON(family, ggml_type, least_rows, most_k, least_columns, most_columns): products that were measured not to be slower than
// 0.98 of stock's speed on a card of the family. A family without a row has not been measured. Written by tests/gpu/check.sh.
// cuda: {card}
"""


def areas(rows: list[dict]) -> list[tuple[int, int, int, int]]:
    """(least_rows, most_k, least_columns, most_columns) that hold won products only, the largest first, until all that can be is held."""
    sizes = {key: sorted({row[key] for row in rows}) for key in ("m", "n", "k")}
    left = [row for row in rows if row["ratio"] >= LEAST_RATIO]
    found = []
    while left:
        best: tuple[int, tuple[int, int, int, int]] | None = None
        for least_m in sizes["m"]:
            for most_k in sizes["k"]:
                for least_n in sizes["n"]:
                    inside = [row for row in rows if row["m"] >= least_m and row["k"] <= most_k and row["n"] >= least_n]
                    if inside and all(row["ratio"] >= LEAST_RATIO for row in inside):
                        gained = sum(row in left for row in inside)
                        if gained and (best is None or gained > best[0]):
                            best = gained, (least_m, most_k, least_n, max(sizes["n"]))
        if best is None:
            return found
        found.append(best[1])
        least_m, most_k, least_n, _ = best[1]
        left = [row for row in left if not (row["m"] >= least_m and row["k"] <= most_k and row["n"] >= least_n)]
    return found


def table(rows: list[dict], types: dict[str, int], card: str) -> str:
    """The whole file. `rows`: {"type", "m", "n", "k", "ratio"}; `types`: ggml's numbers."""
    text = HEADER.format(card=card)
    for name, number in types.items():
        own = [row for row in rows if row["type"] == name]
        text += "".join(f"MMQ_WON(cuda, {number:2}, {m:5}, {k:5}, {n:4}, {most:4})  // {name}\n" for m, k, n, most in areas(own))
    return text
