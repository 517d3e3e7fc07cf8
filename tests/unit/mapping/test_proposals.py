"""Fields that are proposed of records."""

from sluice.mapping.proposals import MOST_FIELDS, column_names, proposals
from sluice.model.fields import TypeName


def test_fields_are_proposed_by_what_was_seen() -> None:
    """Each gets the narrowest type that takes all its values; nothing is guessed from what a text looks like but times."""
    records = [
        b'{"id": 7, "big": 3000000000, "price": 1.5, "open": true, "day": "2026-01-31", "at": "2026-01-31T00:00:00Z"}',
        b'{"id": 8, "mixed": 1, "geo": {"lat": 1, "Lon": 2.5}, "tags": ["a"], "none": null, "12": "x", "lat": "n"}',
        b'{"id": 8, "code": "7", "mixed": "one", "day": "2026-02-01"}',
    ]
    found = {proposal.name: proposal for proposal in proposals(records)}
    assert {name: proposal.type for name, proposal in found.items()} == {
        "id": TypeName.INTEGER,
        "big": TypeName.BIGINT,
        "price": TypeName.NUMERIC,
        "open": TypeName.BOOLEAN,
        "day": TypeName.DATE,
        "at": TypeName.TIMESTAMPTZ,
        "mixed": TypeName.TEXT,
        "lat": TypeName.INTEGER,
        "lon": TypeName.NUMERIC,
        "tags": TypeName.JSON,
        "none": TypeName.TEXT,
        "field_12": TypeName.TEXT,
        "lat_2": TypeName.TEXT,
        "code": TypeName.TEXT,
    }
    assert (found["price"].seen, found["price"].of, found["none"].seen) == (1, 3, 0)
    assert [proposal.type for proposal in proposals([b'{"a": "1", "b": "1.5", "c": "x"}'])] == [
        TypeName.INTEGER,
        TypeName.NUMERIC,
        TypeName.TEXT,
    ]


def test_objects_are_unfolded_where_they_are_alike() -> None:
    """One whose keys differ from record to record is a document, as is what stands too deep."""
    records = [
        b'{"place": {"geo": {"lat": 1}, "city": "Metz"}, "tags": {"a": 1}, "deep": {"a": {"b": {"c": {"d": 1}}}}, "empty": {}}',
        b'{"place": {"geo": {"lat": 2}, "city": null}, "tags": {"b": 1}, "deep": null}',
        b'{"place": null}',
        b"[]",
        b"no JSON",
    ]
    assert [(proposal.path, proposal.type, proposal.seen, proposal.of) for proposal in proposals(records)] == [
        (("place", "geo", "lat"), TypeName.INTEGER, 2, 3),
        (("place", "city"), TypeName.TEXT, 1, 3),
        (("tags",), TypeName.JSON, 2, 3),
        (("deep", "a", "b", "c"), TypeName.JSON, 1, 3),
        (("empty",), TypeName.JSON, 1, 3),
    ]


def test_fields_without_end_are_proposed_in_part() -> None:
    """A person would not read them all."""
    assert len(proposals([b"{%s}" % b",".join(b'"k%d": 1' % number for number in range(1000))])) == MOST_FIELDS


def test_names_of_columns() -> None:
    """They are what Postgres takes without quotes, and each stands once."""
    paths = [
        ("userName",),
        ("USER name",),
        ("a", "id"),
        ("b", "id"),
        ("été",),
        ("\u65e5",),
        ("1st",),
        ("x" * 100,),
        ("_sluice_x",),
        ("xmin",),
        ("row", "ctid"),
    ]
    names = ["user_name", "user_name_2", "id", "b_id", "t", "field", "field_1st", "x" * 63, "sluice_x", "xmin_2", "row_ctid"]
    assert column_names(paths) == names
