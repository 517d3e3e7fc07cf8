"""A `Source` whose pages stand in a list, with errors where the list has them."""

from collections.abc import Iterator, Sequence

from sluice.ports import Page, PageRequest


def numbered_pages(count: int, records: int = 2) -> list[Page]:
    """Return pages whose cursors count up to the last one, which has none."""
    return [
        Page(body=b'{"page": %d}' % number, records=records, cursor=number if number < count else None)
        for number in range(1, count + 1)
    ]


class ListedSource:
    """Yields the pages behind the cursor; an error in the list is raised once, then it is gone."""

    def __init__(self, answers: Sequence[Page | BaseException]) -> None:
        self.answers = list(answers)
        self.requests: list[PageRequest] = []
        self.delivered: list[Page] = []

    def now(self) -> None:
        return None

    def pages(self, request: PageRequest) -> Iterator[Page]:
        self.requests.append(request)
        pages = [answer for answer in self.answers if isinstance(answer, Page)]
        after = next((page for page in pages if request.cursor is not None and page.cursor == request.cursor), None)
        start = 0 if after is None else self.answers.index(after) + 1
        for answer in list(self.answers[start:]):
            if isinstance(answer, BaseException):
                self.answers.remove(answer)
                raise answer
            self.delivered.append(answer)
            yield answer


class RegionalSource:
    """Answers each region from a list of its own."""

    def __init__(self, **regions: Sequence[Page | BaseException]) -> None:
        self.regions = {name: ListedSource(answers) for name, answers in regions.items()}

    def now(self) -> None:
        return None

    def pages(self, request: PageRequest) -> Iterator[Page]:
        return self.regions[request.shard["region"]].pages(request)
