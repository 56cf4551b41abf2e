import pytest

from schemasync.core.locations import (
    Location,
    as_pattern,
    needs_directories,
    parse_location,
    with_host_of,
    without_empty_names,
)


@pytest.mark.parametrize(
    ("text", "scheme", "host", "path"),
    [
        ("/srv/c#/a?b/100%41", "", "", "/srv/c#/a?b/100%41"),
        ("lake/{topic}", "", "", "lake/{topic}"),
        ("", "", "", ""),
        ("file:/srv/c#", "file", "", "/srv/c#"),
        ("FILE:///srv/a?b\n", "file", "", "/srv/a?b\n"),
        ("file://localhost/srv", "file", "localhost", "/srv"),
        ("file:reg", "file", "", "reg"),
        ("s3a://lake/x#y", "s3a", "lake", "/x#y"),
        ("viewfs://tests", "viewfs", "tests", ""),
        ("/a:b//c", "", "", "/a:b//c"),
    ],
)
def test_every_character_of_a_path_stands_for_itself(text: str, scheme: str, host: str, path: str) -> None:
    assert parse_location(text) == Location(scheme=scheme, host=host, path=path)


@pytest.mark.parametrize(
    ("text", "local", "of_arrow"),
    [("/a", True, True), ("file:/a", True, True), ("s3a://b/a", False, True), ("hdfs://b/a", False, False)],
)
def test_the_scheme_says_what_reaches_a_location(text: str, local: bool, of_arrow: bool) -> None:
    place = parse_location(text)
    assert (place.is_local, place.is_of_arrow) == (local, of_arrow)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("s3a://lake//x///y/", "s3a://lake/x/y"),
        ("file:///x//y", "file:///x/y"),
        ("//x/y", "/x/y"),
        ("hdfs://nn/", "hdfs://nn"),
        ("s3a://lake/a:b//c", "s3a://lake/a:b/c"),
    ],
)
def test_of_several_slashes_one_counts(text: str, written: str) -> None:
    assert without_empty_names(text) == written


@pytest.mark.parametrize(
    ("text", "default", "whole"),
    [
        ("hdfs:///lake/{topic}", "hdfs://nn:8020", "hdfs://nn:8020/lake/{topic}"),
        ("hdfs:/lake", "hdfs://nn/", "hdfs://nn/lake"),
        ("hdfs://other/lake", "hdfs://nn", "hdfs://other/lake"),
        ("viewfs:///lake", "hdfs://nn", "viewfs:///lake"),
        ("viewfs:///lake", "viewfs:///", "viewfs:///lake"),
        ("hdfs:lake", "hdfs://nn", "hdfs:lake"),
        ("file:///lake", "file://nn", "file:///lake"),
        ("/lake", "hdfs://nn", "/lake"),
    ],
)
def test_a_location_without_a_host_has_that_of_the_default_file_system_of_its_scheme(
    text: str, default: str, whole: str
) -> None:
    assert with_host_of(text, default) == whole


def test_what_a_pattern_would_take_for_signs_is_escaped() -> None:
    assert as_pattern("file:/c#/a?b/[x]*{y}\\z") == r"file:/c#/a\?b/\[x\]\*\{y\}\\z"


def test_only_where_there_are_none_no_directory_has_to_be_made() -> None:
    assert [
        storage for storage in ("local", "s3", "gcs", "abfs", "py::hadoop+s3a") if not needs_directories(storage)
    ] == ["s3"]
