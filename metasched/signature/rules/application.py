"""An application for any number of processes: roles of processes, their programs, and rules for all numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from metasched.records import InputError
from metasched.signature.computation.measurable_points import MOST_PHASES, Pace
from metasched.signature.equations.expressions import LISTED
from metasched.signature.equations.topologies import TOPOLOGIES
from metasched.signature.rules.attributes import UNROLLED, Attribute, grid_names
from metasched.signature.rules.roles import FEATURES, Cell
from metasched.signature.traces.actions import LISTS, PART, PEERS, Shape
from metasched.signature.traces.folding import Loop, Node
from metasched.signature.traces.matching import Leaf, Part, Program, program_of

#: Most roles, and most actions of a role's program.
MOST_ROLES, MOST_LEAVES = 4_096, 100_000
#: Names that only rules of lists know.
IN_LISTS = {"j", "m", f"P{LISTED}", f"x{LISTED}"}


@dataclass(frozen=True)
class Rule:
    """The rules of one action of a program.

    Parameters
    ----------
    numbers : of each number outside lists.
    lists : of the numbers of each list.
    length : of the lists.
    """

    numbers: tuple[Attribute, ...]
    lists: tuple[Attribute, ...] = ()
    length: Attribute | None = None

    def each(self) -> Iterator[Attribute]:
        """All attributes of the action: numbers, lists, and the length of the lists."""
        yield from self.numbers
        yield from self.lists
        if self.length is not None:
            yield self.length


@dataclass(frozen=True)
class Role:
    """A role: the program of the processes of one cell.

    Parameters
    ----------
    cell : of the features.
    program : leaves are shapes by number, loops have open counts.
    rules : of each leaf.
    counts : of each loop, how often it runs.
    """

    cell: Cell
    program: Program
    rules: tuple[Rule, ...]
    counts: tuple[Attribute, ...]


@dataclass(frozen=True)
class Application:
    """The result of ``metasched signature fit``: an application for any number of processes.

    Parameters
    ----------
    features, topology : which roles there are (:mod:`metasched.signature.rules.roles`).
    shapes : of the actions.
    roles : by cell.
    learned : the numbers of processes that it was learned from.
    paces : of each phase, how long its instructions take, where points were measured.
    parts : of each mark among the actions of the only role, by its number, the calls there, turn by turn, each with a
        mark at its end (:mod:`metasched.signature.traces.parts`).
    origin : the process that its ranks are counted from, round all of them; None where it is process 0.
    """

    features: str
    topology: str
    shapes: tuple[Shape, ...]
    roles: dict[Cell, Role]
    learned: tuple[int, ...]
    paces: tuple[Pace | None, ...] = ()
    parts: Mapping[int, Application] = field(default_factory=dict)
    origin: Attribute | None = None

    def first(self, count: int) -> int:
        """The process that ranks are counted from, of so many."""
        return self.origin.at(count) % count if self.origin else 0

    def each(self) -> Iterator[Application]:
        """The application, and each of its parts."""
        yield self
        yield from self.parts.values()

    def attributes(self) -> Iterator[Attribute]:
        """The attributes of all rules of all roles, also of parts."""
        for application in self.each():
            if application.origin is not None:
                yield application.origin
            for role in application.roles.values():
                yield from role.counts
                for rule in role.rules:
                    yield from rule.each()

    def as_dict(self) -> dict[str, Any]:
        """The application as a JSON document, which :meth:`of` reads."""
        document: dict[str, Any] = {
            "features": self.features,
            "topology": self.topology,
            "learned": list(self.learned),
            "shapes": [
                {"name": each.name, "numbers": each.numbers, "lists": each.lists, "nulls": list(each.nulls)}
                | {"tail": each.tail}
                for each in self.shapes
            ],
            "roles": [_role_document(role) for role in self.roles.values()],
        }
        if self.paces:
            document["paces"] = [None if each is None else each.as_dict() for each in self.paces]
        if self.origin is not None:
            document["origin"] = self.origin.as_dict()
        if self.parts:
            document["parts"] = {str(leaf): each.as_dict() for leaf, each in self.parts.items()}
        return document

    @classmethod
    def of(cls, document: Any, inside: bool = False) -> Application:
        """The application of a document, or of a part of one.

        Raises
        ------
        InputError
            When something in it is of another form than ``fit`` writes.
        """
        try:
            features, topology = str(document["features"]), str(document["topology"])
            shapes = tuple(_shape_of(each) for each in document["shapes"])
            learned = tuple(int(each) for each in document["learned"])
            if len(document["roles"]) > MOST_ROLES:
                raise ValueError
            grid = grid_names(topology) if topology in TOPOLOGIES else set()
            roles = [_role_of(each, shapes, grid) for each in document["roles"]]
            if len(document.get("paces", ())) > MOST_PHASES:
                raise ValueError
            paces = tuple(None if each is None else Pace.of(each) for each in document.get("paces", ()))
            parts = {int(leaf): cls.of(each, inside=True) for leaf, each in document.get("parts", {}).items()}
            origin = Attribute.of(document["origin"]) if "origin" in document else None
            if origin is not None and not (origin.expression is not None and origin.computable({"n"})):
                raise ValueError
            only = roles[0].program.leaves if len(roles) == 1 else []
            marks = {leaf.number for leaf in only if shapes[leaf.shape].name == PART}
            if parts and (inside or not marks.issuperset(parts)):
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("is of another form than metasched signature fit writes") from None
        known = all(name in FEATURES for name in features.split("+") if name)
        if not known or topology not in TOPOLOGIES or not roles:
            raise InputError("is of another form than metasched signature fit writes")
        return cls(features, topology, shapes, {role.cell: role for role in roles}, learned, paces, parts, origin)


def _role_document(role: Role) -> dict[str, Any]:
    def spelled(parts: Sequence[Part]) -> list[Any]:
        return [each.shape if isinstance(each, Leaf) else spelled(each.body) for each in parts]

    return {
        "cell": list(role.cell),
        "program": spelled(role.program.parts),
        "rules": [
            {
                "numbers": [each.as_dict() for each in rule.numbers],
                "lists": [each.as_dict() for each in rule.lists],
                "length": None if rule.length is None else rule.length.as_dict(),
            }
            for rule in role.rules
        ],
        "counts": [each.as_dict() for each in role.counts],
    }


def _names(loops: Sequence[int]) -> set[str]:
    """The names that rules know inside of loops, whatever the grid."""
    return {"n", "r"} | {f"{letter}{place}" for letter in "ic" for place in range(len(loops))}


def _shape_of(document: Any) -> Shape:
    name = str(document["name"])
    numbers, lists = int(document["numbers"]), int(document["lists"])
    nulls = tuple(int(each) for each in document["nulls"])
    shape = Shape(name, numbers, lists, nulls, bool(document["tail"]))
    plain = name.replace("_", "")
    listed = LISTS.get(name.lower()) or LISTS.get(name.lower()[1:], "")
    if not (plain.isascii() and plain.isalpha() and len(name) <= 40 and 0 <= numbers <= 10_000):
        raise ValueError
    if lists and (listed.count("V") != lists or listed.count("s") != numbers):
        raise ValueError
    if any(each not in PEERS.get(name.lower(), ()) for each in nulls):
        raise ValueError
    return shape


def _role_of(document: Any, shapes: Sequence[Shape], grid: Set[str]) -> Role:
    left = MOST_LEAVES

    def nodes(spelled: Any, depth: int) -> tuple[Node, ...]:
        nonlocal left
        if depth > 32 or not isinstance(spelled, list):
            raise ValueError
        found: list[Node] = []
        for each in spelled:
            left -= 1
            if left < 0:
                raise ValueError
            if type(each) is int and 0 <= each < len(shapes):
                found.append(each)
            elif isinstance(each, list) and each:
                found.append(Loop(1, nodes(each, depth + 1)))
            else:
                raise ValueError
        return tuple(found)

    program = program_of(nodes(document["program"], 0))
    rules = tuple(
        Rule(
            tuple(Attribute.of(each) for each in rule["numbers"]),
            tuple(Attribute.of(each) for each in rule["lists"]),
            None if rule["length"] is None else Attribute.of(rule["length"]),
        )
        for rule in document["rules"]
    )
    counts = tuple(Attribute.of(each) for each in document["counts"])
    sound = len(rules) == len(program.leaves) and len(counts) == len(program.repeats)
    for leaf, rule in zip(program.leaves, rules, strict=False):
        shape = shapes[leaf.shape]
        sound = sound and len(rule.numbers) == shape.numbers and len(rule.lists) == shape.lists
        sound = sound and (rule.length is not None) == bool(shape.lists)
        known = grid | _names(leaf.loops) | ({"q"} if shape.name.lower() == "waitall" else set())
        # Numbers of a message may follow from the partner, which follows from nothing of the kind.
        known_beside = known | ({"p"} if shape.peers else set())
        numbers = enumerate(rule.numbers)
        sound = sound and all(
            each.computable(known if place in shape.peers else known_beside) for place, each in numbers
        )
        sound = sound and (rule.length is None or rule.length.computable(known))
        sound = sound and all(each.computable(known | IN_LISTS) for each in rule.lists)
    for repeat, times in zip(program.repeats, counts, strict=False):
        sound = sound and times.computable(grid | _names(repeat.loops))
    if not sound:
        raise ValueError(UNROLLED)
    return Role(tuple(int(each) for each in document["cell"]), program, rules, counts)
