"""For all tests written in Python: which of them come first."""


def pytest_configure(config):
    config.addinivalue_line("markers", "long: ten seconds or more, nearly all of it waiting")


def pytest_collection_modifyitems(items):
    """Long waits begin early, spread over the workers: at the end all others would wait for them."""
    waits = [item for item in items if item.get_closest_marker("long")]
    others = [item for item in items if not item.get_closest_marker("long")]
    items.clear()
    for wait in waits:
        items += [wait, *others[:4]]
        del others[:4]
    items += others
