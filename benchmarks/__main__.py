"""``python -m benchmarks [NAME ...]``: runs the benchmarks, each of which prints ratios measured in this one run."""

import argparse
import importlib
import pkgutil

import benchmarks


def main() -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones (all by default): {', '.join(names)}")
    chosen = parser.parse_args().names or names
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(names)}")
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name}: {module.__doc__.strip().splitlines()[0]}", flush=True)
        module.main()


if __name__ == "__main__":
    main()
