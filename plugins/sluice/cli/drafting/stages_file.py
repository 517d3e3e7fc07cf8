"""The text of stages.yaml and a stage come in; the text with the stage in it goes out, everything else as it stands."""

from typing import Final

import yaml

from sluice.errors import UsageInvalid

_NEW: Final = "# The stages of this team: what is being done, each with a policy of its own.\n\nstages:\n"


def with_stage(text: str | None, stage: str, comment: str) -> str | None:
    """Return the text with the stage behind all others; None if it is there already.

    Raises `UsageInvalid` where a person has to write it, since the file is not as it usually is.
    """
    if text is None:
        return f"{_NEW}{_entry(stage, comment, '  ')}"
    stages = _stages(text)
    if stages is None or stages.flow_style or not stages.value:
        raise UsageInvalid(
            f"include/stages.yaml has no list of stages in lines of their own: declare the stage {stage} there by hand, then "
            "ask again"
        )
    if stage in [key.value for key, _ in stages.value]:
        return None
    lines = text.splitlines(keepends=True)
    behind = _last_line(stages) + 1
    if not lines[behind - 1].endswith("\n"):
        lines[behind - 1] += "\n"
    indent = " " * stages.value[0][0].start_mark.column
    return "".join([*lines[:behind], "\n", _entry(stage, comment, indent), *lines[behind:]])


def _entry(stage: str, comment: str, indent: str) -> str:
    return f"{indent}# {comment}\n{indent}{stage}: {{}}\n"


def _stages(text: str) -> yaml.MappingNode | None:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    found = next((value for key, value in root.value if key.value == "stages"), None)
    return found if isinstance(found, yaml.MappingNode) else None


def _last_line(node: yaml.Node) -> int:
    """Return the line, from 0, on which the last value of a node ends: behind it there may be comments of what follows."""
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return max(_last_line(part) for part in node.value[-1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _last_line(node.value[-1])
    return int(node.end_mark.line)
