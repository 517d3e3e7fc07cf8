"""A template of a spec in; the names it uses and what is wrong with it out. Templates are Jinja, in its sandbox."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class TemplateReport:
    """What a template uses, such as `shard.region` or `watermark`, and what is wrong with it."""

    uses: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def inspect_template(text: str, known: Mapping[str, tuple[str, ...] | None]) -> TemplateReport:
    """Check a template against the names it may use: each with its parts, or without any if it is a value itself.

    A name whose parts are None may be either: nobody knows what it is before a run.
    """
    report = TemplateReport()
    if "{" not in text:
        return report

    from jinja2 import TemplateError, meta
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment()
    environment.globals.clear()
    try:
        tree = environment.parse(text)
        environment.compile(tree)
        foreign = meta.find_undeclared_variables(tree)
    except (TemplateError, SyntaxError, RecursionError) as error:  # the last two are Python's, who reads what Jinja makes of it
        why = error.msg if isinstance(error, SyntaxError) else error
        report.problems.append(f"is no valid template: {why}")
        return report
    for name, part in _uses(tree, foreign):
        if not _is_known(name, part, known):
            written = name if part is None else f"{name}.{part}"
            report.problems.append(f"uses the unknown name {written!r}; known: {', '.join(_spelled(known)) or 'none'}")
        else:
            report.uses.add(name if part is None else f"{name}.{part}")
    return report


def _is_known(name: str, part: str | None, known: Mapping[str, tuple[str, ...] | None]) -> bool:
    parts = known.get(name, ())
    return name in known and (parts is None or (part in parts if parts else part is None))


def _spelled(known: Mapping[str, tuple[str, ...] | None]) -> list[str]:
    return [f"{name}.{part}" if part else name for name, parts in known.items() for part in (parts or ("",))]


def _uses(node: Any, foreign: set[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each use of a name from outside: the name, and the part of it that is asked for, if any."""
    from jinja2 import nodes

    if isinstance(node, nodes.Name) and node.name in foreign:
        yield node.name, None
        return
    owner = node.node if isinstance(node, nodes.Getattr | nodes.Getitem) else None
    if isinstance(owner, nodes.Name) and owner.name in foreign:
        part = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        yield owner.name, None if part is None else str(part)
        return
    for child in node.iter_child_nodes():
        yield from _uses(child, foreign)
